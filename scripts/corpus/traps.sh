# Sourced by corpus.sh: what has been seen in AMD's tarballs and has broken
# installers, made of real files.

stage=/__w/rockrel/rockrel/build/stage # where AMD's builder assembles a tree

add_traps() { # WORK TREE
	say "adding traps"
	compile_programs "$1" "$2"
	move_headers "$1" "$2"
	add_gpu_code "$1" "$2"
	add_foreign_elf "$2"
	add_scripts "$2"
	add_leaked_text "$2"
	add_odd_files "$2"
	add_links "$2"
}

cc() { gcc -O1 -g0 -Wl,--build-id=none "$@" || die "gcc failed: apt-get install gcc libc6-dev"; }

# in_tree runs a program of the tree before anything has repaired its run path.
in_tree() { # TREE COMMAND...
	LD_LIBRARY_PATH=$1/lib:$1/lib/llvm/lib:$1/lib/rocm_sysdeps/lib "${@:2}"
}

# compile_programs adds run paths with directories of the builder in them, one
# in the old form, and a library that lacks the directory that it needs.
compile_programs() { # WORK TREE
	local src=$here/corpus/src lib=$2/lib sysdeps=$2/lib/rocm_sysdeps/lib
	cc -o "$2/bin/rocgdb-py3.11" "$src/python.c" "$sysdeps/libpython3.11.so.1.0" -Wl,-rpath-link,"$sysdeps" \
		-Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/../lib:/opt/python-shared/cp311-cp311/lib'
	mkdir -p "$lib/python3.11/site-packages/rocpd" "$lib/rdc/grpc/lib"
	cc -shared -fPIC -o "$lib/python3.11/site-packages/rocpd/libpyrocpd.so" "$src/nested.c" "$sysdeps/libsqlite3.so.0" \
		-Wl,-rpath-link,"$sysdeps" -Wl,--enable-new-dtags '-Wl,-rpath,$ORIGIN/../lib:$ORIGIN/rocm_sysdeps/lib'
	cc -shared -fPIC -o "$lib/rdc/grpc/lib/libgrpc.so.1" "$src/leaf.c" -Wl,-soname,libgrpc.so.1
	cc -o "$2/bin/rdcd" "$src/rdcd.c" "$lib/rdc/grpc/lib/libgrpc.so.1" \
		-Wl,--disable-new-dtags "-Wl,-rpath,\$ORIGIN/../lib:$stage/lib/rdc/grpc/lib"
	cc -o "$2/bin/comgr-version" "$src/comgr.c" "$lib/libamd_comgr.so.2" \
		-Wl,-rpath-link,"$lib/llvm/lib:$sysdeps" -Wl,--allow-shlib-undefined "-Wl,-rpath,$stage/lib"
	cc -static -o "$2/bin/rocm-static-info" "$src/static.c"
	cc -c -o "$lib/llvm/lib/crt_demo.o" "$src/leaf.c"
}

# move_headers makes kpack files of libraries that real programs load, and of a program.
move_headers() { # WORK TREE
	local lib=$2/lib file
	"$1/mkcorpus" late --ref lib/librocrand.so.1.1 --kpack '../.kpack/rand_lib_@GFXARCH@.kpack' "$lib/librocrand.so.1.1"
	cp -p "$2/bin/rocminfo" "$2/bin/test_hip_api"
	for file in "$2/bin/test_hip_api" "$lib/libamd_comgr.so.2.4.0" "$lib/libhsa-runtime64.so.1.5.0" "$lib/llvm/lib/libLLVM-16.so.1"; do
		"$1/mkcorpus" late "$file"
	done
}

# add_gpu_code compiles a kernel with the tree's own compiler.
add_gpu_code() { # WORK TREE
	local gpu out
	mkdir -p "$2/.kpack"
	for gpu in gfx1030 gfx1036; do
		mkdir -p "$2/lib/rocblas/library/$gpu"
		out=$2/lib/rocblas/library/$gpu/Kernels.so-000-$gpu.hsaco
		in_tree "$2" "$2/lib/llvm/bin/clang" -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu="$gpu" -nogpulib \
			-o "$out" "$here/corpus/src/kernel.cl" || die "the tree's clang cannot compile for $gpu"
		"$1/mkcorpus" kpack --group rand --gpu "$gpu" --kernel lib/librocrand.so.1.1 "$out" >"$2/.kpack/rand_lib_$gpu.kpack"
	done
}

# add_foreign_elf adds ELF files for other machines.
add_foreign_elf() { # TREE
	local dir=$1/share/rocm/foreign target
	mkdir -p "$dir"
	for target in i386-linux-gnu aarch64-linux-gnu; do
		in_tree "$1" "$1/lib/llvm/bin/clang" --target=$target -nostdlib -shared -fPIC -fuse-ld=lld \
			-Wl,-soname,libleaf.so.1 "-Wl,-rpath,$stage/lib" -o "$dir/libleaf-${target%%-*}.so" "$here/corpus/src/leaf.c" ||
			die "the tree's clang cannot link for $target"
	done
}

add_scripts() { # TREE
	mkdir -p "$1/share/rocprofiler-systems/examples" "$1/libexec/rocprofiler-compute"
	printf '#!/opt/python/cp312-cp312/bin/python3.12\nprint("traced")\n' >"$1/share/rocprofiler-systems/examples/trace.py"
	printf '#!/usr/bin/env python3.11\nprint("causal")\n' >"$1/share/rocprofiler-systems/examples/causal.py"
	printf '#!/usr/bin/python3 -s\nprint("analyze")\n' >"$1/libexec/rocprofiler-compute/rocprof-compute"
	cat >"$1/bin/rocgdb" <<'END'
#!/bin/sh
# Starts the debugger that was built for the newest Python of this machine.
dir=$(dirname "$(readlink -f "$0")")
for v in 3.14 3.13 3.12 3.11 3.10 none; do
	gdb=$dir/rocgdb-py$v
	if [ -x "$gdb" ] && "$gdb" --version >/dev/null 2>&1; then exec "$gdb" "$@"; fi
done
echo "rocgdb: no usable Python" >&2
exit 1
END
	chmod 755 "$1"/share/rocprofiler-systems/examples/*.py "$1/libexec/rocprofiler-compute/rocprof-compute" "$1/bin/rocgdb"
	ln -s ../libexec/rocprofiler-compute/rocprof-compute "$1/bin/rocprof-compute"
}

add_leaked_text() { # TREE
	local name dir=$1/lib/rocm_sysdeps/lib/pkgconfig
	mkdir -p "$dir" "$1/lib/cmake/rocrand"
	for name in zlib libelf libdw; do
		cat >"$dir/$name.pc" <<END
prefix=/__w/rockrel/rockrel/build/third-party/sysdeps/linux/$name/build/stage/lib/rocm_sysdeps
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $name
Description: names the builder's directory
Version: 1.0
Libs: -L\${libdir} -l${name#lib}
Cflags: -I\${includedir}
END
	done
	echo "set(ROCRAND_LIBRARY \"$stage/lib/librocrand.so.1\")" >"$1/lib/cmake/rocrand/rocrand-targets.cmake"
	echo "libdir='$stage/lib'" >"$1/lib/librocrand.la"
}

add_odd_files() { # TREE
	local deep=$1/lib/hipblaslt/library/gfx1036 i
	mkdir -p "$deep" "$1/share/rocm/empty"
	echo tensile >"$deep/TensileLibrary_BB_BB_HA_Bias_SAB_SCD_SAV_UA_Type_BB_HPA_Contraction_l_Ailk_Bjlk_Cijk_Dijk_Activation_true_UseBias_true_fallback_gfx1036.dat"
	deep=$1/share/rocm/deep
	for i in 1 2 3 4 5 6 7 8; do deep=$deep/a-directory-below-a-directory-$i; done
	mkdir -p "$deep"
	echo deep >"$deep/deep.txt"
	: >"$1/share/rocm/empty.txt"
	echo legal >"$1/share/rocm/a name, größer.txt"
	truncate -s 4M "$1/share/rocm/zeros.bin"
	printf '#!/bin/sh\nexit 0\n' >"$1/libexec/rocm_smi/helper"
	chmod 4755 "$1/libexec/rocm_smi/helper"
	chmod 666 "$1/share/rocm/empty.txt"
	chmod 775 "$1/lib"
	# Read-only files that need an edit, as the OMPD module of AMD's was.
	chmod 444 "$1/lib/librocm_smi64.so.1.0" "$1/lib/rocm_sysdeps/lib/pkgconfig/libdw.pc"
	chmod 555 "$1/lib/llvm/bin/opt" "$1/libexec/rocprofiler-compute/rocprof-compute"
}

add_links() { # TREE
	ln -f "$1/lib/librocrand.so.1.1" "$1/lib/librocrand.so.1"
	ln -f "$1/lib/libhsakmt.so.1.0.6" "$1/lib/libhsakmt.so.1"
	ln -sf "$stage/lib/librocm_smi64.so.1" "$1/lib/librocm_smi64.so"
	ln -s "$stage/lib/librocrand.so.1" "$1/lib/librocrand.so"
	ln -s /therock/src/rocm-systems "$1/share/rocm/sources"
}

# add_version writes what tells one night from another.
add_version() { # TREE VERSION
	local dir=$1/share/therock
	mkdir -p "$dir" "$1/.info"
	echo "${2%%a*}" >"$1/.info/version"
	echo '{"dist_amdgpu_targets": "gfx1030;gfx1036"}' >"$dir/dist_info.json"
	cat >"$dir/therock_manifest.json" <<END
{
  "the_rock_commit": "$(sha256sum <<<"$2" | cut -c1-40)",
  "submodules": [],
  "rocm_package_version": "$2",
  "rocm_version": "${2%%a*}",
  "flags": {"KPACK_SPLIT_ARTIFACTS": true}
}
END
	mkdir -p "$1/share/doc/rocm"
	echo "This is $2." >"$1/share/doc/rocm/CHANGES"
}

# change_a_little is what one day does: new kernels, libraries rebuilt, a file gone, a file come.
change_a_little() { # TREE VERSION
	local lib=$1/lib file
	# Bytes that nobody reads: 16 behind the header of an archive, and where the
	# program headers of a library were before they moved.
	overwrite "$1/.kpack/rand_lib_gfx1036.kpack" 32 "${2: -9}"
	for file in "$lib/librocrand.so.1.1" "$lib/libamd_comgr.so.2.4.0"; do overwrite "$file" 64 "$2"; done
	rm "$lib/rdc/grpc/lib/libgrpc.so.1" "$1/share/doc/rocminfo/LICENSE.md"
	cc -shared -fPIC "-DROCM_VERSION=\"$2\"" -o "$lib/rdc/grpc/lib/libgrpc.so.1" "$here/corpus/src/leaf.c" -Wl,-soname,libgrpc.so.1
	echo "since $2" >"$1/share/rocm/new-in-$2.txt"
}

overwrite() { printf '%s' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; } # FILE OFFSET BYTES
