"""A real one-node Slurm: an array, a task killed with -9, tasks requeued by USR1, the dependent
merge; the bytes are those of one process.

usage: test_slurm.py PROGRAM. Needs munged, slurmctld, slurmd (Debian: munge slurmctld slurmd
slurm-client) and root. Without them it says so and is skipped (exit status 77)."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
program = sys.argv[1]
needed = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
missing = [n for n in needed if not shutil.which(n, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
if missing or os.geteuid() != 0:
    print("skipped: ", f"missing {', '.join(missing)}" if missing else "needs root")
    sys.exit(77)
os.environ["PATH"] += ":/usr/sbin:/sbin"

folder = pathlib.Path(tempfile.mkdtemp(prefix="attnstress-slurm-"))
folder.chmod(0o755)
host = socket.gethostname().split(".")[0]
daemons = []


def port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def start(*command):
    log = open(folder / (command[0] + ".out"), "w")
    daemons.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder))


def start_cluster():
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir()
    (folder / "munge").chmod(0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    sock = folder / "munge" / "socket"
    start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={sock}",
          f"--pid-file={folder}/munge/pid", f"--log-file={folder}/munge/log",
          f"--seed-file={folder}/munge/seed")
    cpus = os.cpu_count()
    (folder / "slurm.conf").write_text(f"""
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={sock}
CredType=cred/munge
SlurmctldPort={port()}
SlurmdPort={port()}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SchedulerTimeSlice=5
MinJobAge=300
KillWait=5
ReturnToService=2
MpiDefault=none
JobRequeue=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
""")
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    for _ in range(100):
        if sock.exists():
            break
        time.sleep(0.05)
    start("slurmctld", "-D", "-f", str(folder / "slurm.conf"))
    start("slurmd", "-D", "-f", str(folder / "slurm.conf"), "-N", host)
    for _ in range(300):
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True)
        if done.stdout.strip() in ("idle", "mixed"):
            return
        time.sleep(0.1)
    for name in ("munged.out", "slurmctld.log", "slurmd.log", "slurmctld.out", "slurmd.out"):
        if (folder / name).exists():
            print(name, (folder / name).read_text()[-1500:])
    raise AssertionError("the cluster does not start: " + done.stdout + done.stderr)


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], cwd=folder / "work", capture_output=True,
                          text=True, timeout=300, **more)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def states(job):
    text = subprocess.run(["squeue", "-h", "-r", "-t", "all", "-j", job, "-o", "%i %T"],
                          capture_output=True, text=True).stdout
    return dict(line.split() for line in text.splitlines())


def wait_for(job, seconds=240):
    for _ in range(seconds * 4):
        now = states(job)
        if now and all(s in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT") for s in now.values()):
            return now
        time.sleep(0.25)
    raise AssertionError(f"job {job} does not end: {states(job)}")


def holders(parts):
    """Pids that the locks in a folder of parts name."""
    found = []
    for lock in parts.glob("*.lock"):
        try:
            lines = lock.read_text().splitlines()
        except OSError:
            continue
        found += [int(line[4:]) for line in lines if line.startswith("pid ")]
    return found


def main():
    work = folder / "work"
    work.mkdir()
    shutil.copy(ROOT / "examples/captures/recall-short.h5", work / "capture.h5")
    shutil.copy(ROOT / "tests/faults/suite.yaml", work / "suite.yaml")
    # enough work that a task can be met while it runs
    suite = (work / "suite.yaml").read_text().replace("count: [1, 4, 16]", "count: [1, 4, 16, 64]")
    suite = suite.replace("64]}", "64], replicates: 8}")
    suite = suite.replace("probes: last", "probes: all").replace("layers: [0, 1]", "layers: all")
    (work / "suite.yaml").write_text(suite + "\n")
    os.environ["ATTNSTRESS"], os.environ["GRACE"] = program, "0"
    os.environ["OMP_WAIT_POLICY"] = "passive"
    run(program, "run", "suite.yaml", "-q", "-o", "one.h5", "--backend", "reference")
    whole = (work / "one.h5").read_bytes()
    start_cluster()

    # undisturbed
    words = run(ROOT / "scripts/slurm/submit.sh", 3, "suite.yaml", "calm.h5", "-q", "--backend",
                "reference").replace(",", "").split()
    array, merge = words[1], words[3]
    wait_for(array)
    assert set(wait_for(merge).values()) == {"COMPLETED"}, states(merge)
    assert (work / "calm.h5").read_bytes() == whole
    print("array of 3 and dependent merge: the bytes of one process")

    # one program killed with -9 (its task fails), one signalled (it seals and is requeued)
    for how in ("KILL", "USR1"):
        out = f"{how}.h5"
        array = run("sbatch", "--parsable", "--array=0-2", ROOT / "scripts/slurm/array.sh",
                    "suite.yaml", out, "-q", "--backend", "reference").strip()
        met = None
        for _ in range(60000):
            pids = holders(work / f"{out}.parts")
            if pids:
                met = pids[0]
                break
            time.sleep(0.001)
        assert met, "no task was met while it ran"
        os.kill(met, getattr(signal, "SIG" + how))
        ended = wait_for(array)
        if how == "KILL":
            failed = [i for i, s in ended.items() if s == "FAILED"]
            assert failed, ended
            for task in failed:
                run("scontrol", "requeue", task)
            ended = wait_for(array)
        assert set(ended.values()) == {"COMPLETED"}, ended
        run(program, "merge", f"{out}.parts", "-o", out, "-q")
        assert (work / out).read_bytes() == whole, how
        print(f"a task that got SIG{how} and was requeued: the same bytes")


passed = False
try:
    main()
    passed = True
finally:
    for d in reversed(daemons):
        d.terminate()
    for d in daemons:
        try:
            d.wait(10)
        except subprocess.TimeoutExpired:
            d.kill()
    if passed:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print("left for reading:", folder)
