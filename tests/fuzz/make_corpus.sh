#!/usr/bin/env bash
# Makes the seed inputs of the binary formats again: make_corpus.sh PROGRAM
set -euo pipefail
cd "$(dirname "$0")"
program=$1
"$program" synth -o corpus/capture/valid.h5 --samples 1 --layers 1 --q-heads 2 --kv-heads 1 --keys 48 \
    --probes 1 --d-qk 8 --d-v 4 --distractors 1 --sink --w-o -q
cat >/tmp/seed.yaml <<'YAML'
suite: seed
version: 1
seed: 1
perturbations:
  - {name: near, kind: distractors, positions: overlay, source: {similar: {cosine: 0.8}}, placement: {depth: 0.5}, count: [1, 2]}
gates:
  - {name: g, metric: tv, max: 1}
metrics: {keep: [log_mass_shift, mass, tv]}
YAML
"$program" run /tmp/seed.yaml --capture corpus/capture/valid.h5 -o corpus/result/valid.h5 -q
rm /tmp/seed.yaml
/usr/bin/python3 - <<'PY'
import json, struct
import numpy as np

header = json.dumps({"layers.0.q": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [0, 4]},
                     "k": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
                     "__metadata__": {"format": "pt"}}).encode()
header += b" " * (-len(header) % 8)
open("corpus/tensors/small.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(range(12)))
np.save("corpus/tensors/c.npy", np.arange(6, dtype="<f4").reshape(2, 3))
np.save("corpus/tensors/fortran.npy", np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)))
np.savez("corpus/tensors/two.npz", a=np.zeros(3, "<f2"), b=np.ones((1, 2), "<i8"))
open("corpus/edit/insert", "wb").write(struct.pack("<6H", 10, 0, 5, 3, 2, 4))
open("corpus/edit/hide-and-move", "wb").write(struct.pack("<9H", 20, 1, 5, 9, 1, 2, 12, 18, 3))
open("corpus/edit/swap", "wb").write(struct.pack("<5H", 30, 3, 6, 8, 2))

c = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n"
fortran = b"{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3), }\n"
npy = struct.pack("<BH", 1, 24) + c
open("corpus/npy/c", "wb").write(npy)
open("corpus/npy/fortran", "wb").write(struct.pack("<BH", 2, 48) + fortran)
open("corpus/npy/empty", "wb").write(struct.pack("<BH", 3, 0)
                                     + b"{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }")
open("corpus/npy/words", "wb").write(struct.pack("<BH", 1, 4)
                                     + b"{'descr': '|V2', 'fortran_order': False, 'shape': (2L,), }")
member = lambda kind, name, body: bytes([kind, len(name), len(body)]) + name + body
open("corpus/npz/stored", "wb").write(member(0, b"a.npy", npy))
open("corpus/npz/two", "wb").write(member(0, b"a.npy", npy)
                                   + member(1, b"b.npy", struct.pack("<BH", 2, 48) + fortran))
PY
