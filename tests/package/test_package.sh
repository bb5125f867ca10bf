#!/usr/bin/env bash
# Packs the build, unpacks the package into an empty folder and uses what came out; with
# ATTNSTRESS_TEST_INSTALL=1 (as root) also installs and removes it for real.
#   test_package.sh BUILD SCRATCH SOURCES
set -euo pipefail
build=$1 scratch=$2 sources=$3
root=$scratch/root
rm -rf "$root" "$scratch"/*.deb
(cd "$scratch" && cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch" >cpack.log 2>&1) ||
    { cat "$scratch/cpack.log"; exit 1; }
deb=$(ls "$scratch"/attnstress_*.deb)
dpkg-deb -x "$deb" "$root"

fail() { echo "package: $*" >&2; exit 1; }
program=$root/usr/bin/attnstress
share=$root/usr/share/attnstress
[[ -x $program ]] || fail "no program in $deb"
grep -q libhdf5 <<<"$(dpkg-deb -f "$deb" Depends)" || fail "the package does not depend on libhdf5"

"$program" run "$share/suites/quickstart.yaml" -o "$scratch/installed.h5" --quiet --force
filter=$(find "$root" -name libh5zstd.so)
[[ $filter == */hdf5/serial/plugins/libh5zstd.so ]] || fail "the filter lies at '$filter'"
HDF5_PLUGIN_PATH=$(dirname "$filter") ncdump -v mass "$scratch/installed.h5" >"$scratch/mass.txt" ||
    fail "ncdump cannot read a result with the packaged filter"
grep -q 'mass =' "$scratch/mass.txt" || fail "ncdump printed no masses"

[[ -z $(LC_ALL=C groff -man -ww -z "$root/usr/share/man/man1/attnstress.1" 2>&1) ]] ||
    fail "groff complains of the manual page"
for command in $("$program" help | sed -n 's/^  \([a-z]*\) .*/\1/p' | sort -u); do
    [[ $command == attnstress ]] || grep -q "SS attnstress $command" "$root/usr/share/man/man1/attnstress.1" ||
        fail "the manual page lacks $command"
done

# Completion: commands first, then the options of the command.
complete_words() {
    bash -c 'source "$1"; COMP_WORDS=(attnstress "${@:2}"); COMP_CWORD=$(($# - 1)); _attnstress
             printf "%s\n" "${COMPREPLY[@]}"' _ "$root/usr/share/bash-completion/completions/attnstress" "$@"
}
grep -qx verify <<<"$(complete_words ver)" || fail "completion does not know verify"
grep -qx -- --case <<<"$(complete_words explain --ca)" || fail "completion does not know explain --case"

if [[ ${ATTNSTRESS_TEST_INSTALL:-} == 1 ]]; then
    dpkg -i "$deb"
    # netCDF looks for filters by HDF5_PLUGIN_PATH alone; HDF5 itself knows Debian's folder.
    (cd / && env -u HDF5_PLUGIN_PATH h5dump -d /mass "$scratch/installed.h5" >/dev/null) ||
        fail "h5dump does not find the installed filter"
    attnstress doctor
    dpkg -r attnstress
    [[ ! -e /usr/bin/attnstress ]] || fail "the program is still there after removal"
fi
cmp -s "$share/schema/suite.schema.json" "$sources/schema/suite.schema.json" || fail "another schema"
echo "package: $(basename "$deb") works"
