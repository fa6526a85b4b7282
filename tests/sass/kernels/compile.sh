#!/bin/sh
# compile.sh CHIP FOLDER: the cubins of a chip ("75" to "120") in a folder; line tables hold its path.
#
# linked.cubin    all of *.cu, each compiled apart (-rdc), then linked: functions in sections of their own
# bare.cubin      as linked.cubin, without -lineinfo
# inlined.cubin   stencil.cu alone: one kernel and what is inlined in it
# local.cubin     local.cu alone: functions in the section of the kernel that calls them
set -eu
nvcc=${NVCC:-nvcc}
cp "$(dirname "$0")"/*.cu "$(dirname "$0")"/*.h "$2"
cd "$2"
one() { "$nvcc" -std=c++17 -arch=sm_"$chip" -cubin "$@"; }
chip=$1
for name in linked bare; do
  lines=-lineinfo
  [ $name = linked ] || lines=
  objects=
  for source in *.cu; do
    one -rdc=true $lines "$source" -o "${source%.cu}.o.cubin"
    objects="$objects ${source%.cu}.o.cubin"
  done
  "$(dirname "$(command -v "$nvcc")")"/nvlink -arch=sm_"$chip" $objects -o $name.cubin
done
one -lineinfo stencil.cu -o inlined.cubin
one -lineinfo local.cu -o local.cubin
rm -f ./*.o.cubin
