# Sourced by corpus.sh: puts the files of Debian's packages where AMD has them.
# The links amdgcn and llvm at the root are left out, as in older tarballs.

lay_out() { # DEBIAN TREE
	local from=$1 to=$2 multi=usr/lib/x86_64-linux-gnu
	say "laying out"
	mkdir -p "$to"/{bin,lib/llvm/amdgcn,lib/rocm_sysdeps/lib,libexec,share,include}
	lay_out_compiler "$from" "$to"
	mv "$from/$multi/amdgcn/bitcode" "$to/lib/llvm/amdgcn/bitcode"
	mv "$from/$multi/cmake" "$to/lib/cmake"
	mv "$from"/usr/lib/cmake/* "$to/lib/cmake/"
	mv "$from"/usr/lib/librocm_smi64* "$from"/usr/lib/liboam* "$to/lib/" 2>/dev/null || [[ -e $to/lib/librocm_smi64.so.1 ]]
	mv "$from/$multi"/{libamd_comgr,libamdhip64,libhiprtc-builtins,libhsa-runtime64,libhsakmt,librocrand}.so* "$to/lib/"
	find "$from/$multi" "$from/lib/x86_64-linux-gnu" -maxdepth 1 -name '*.so*' \( -type f -o -type l \) \
		-exec mv -n -t "$to/lib/rocm_sysdeps/lib" {} +
	mv "$from"/usr/include/{hip,hsa,amd_comgr*} "$to/include/"
	mv "$from/usr/libexec/rocm_smi" "$to/libexec/rocm_smi"
	mv "$from"/usr/share/{doc,hip,man} "$to/share/"
	mv "$from"/usr/bin/{rocminfo,rocm_agent_enumerator,rocm-smi,hipcc*,hipconfig*,hipvars.pm,hipdemangleatp,roc-obj*} "$to/bin/"
	# Debian's place for libraries, in files that derive the rest from their own.
	grep -rlZ x86_64-linux-gnu "$to/lib/cmake" | xargs -0r sed -i \
		-e 's|lib/x86_64-linux-gnu/amdgcn|lib/llvm/amdgcn|g' -e 's|lib/x86_64-linux-gnu|lib|g'
	sed -i 's/clang++-15/clang++/' "$to"/bin/hip*.pl
	drop_dangling "$to"
	compiler_links "$to"
	copy_licenses "$to"
}

lay_out_compiler() { # DEBIAN TREE
	local from=$1 llvm=$2/lib/llvm multi=$1/usr/lib/x86_64-linux-gnu link
	mv "$from"/usr/lib/llvm-16/{bin,lib,libexec,share} "$llvm/"
	rm -rf "$llvm/include"
	mkdir -p "$llvm/include"
	cp -a "$from"/usr/include/llvm-16/* "$from"/usr/include/llvm-c-16/* "$llvm/include/"
	find "$from/usr/lib/llvm-16/include" -mindepth 1 -maxdepth 1 -type d -exec cp -a -t "$llvm/include" {} +
	# Libraries of the compiler that Debian keeps in the system's directory.
	find "$llvm/lib" -maxdepth 1 -type l -lname '*x86_64-linux-gnu/*' -delete
	for link in "$multi"/libLLVM-1* "$multi"/libclang-16* "$multi"/liblldb-16*; do
		mv "$link" "$llvm/lib/"
	done
	rm -f "$multi"/libclang-cpp.so.16 "$multi"/libiomp5.so "$multi"/libomp*.so*
}

drop_dangling() { # TREE: links into parts of Debian that are not here
	find "$1" -xtype l -delete
}

compiler_links() { # TREE
	local llvm=$1/lib/llvm name
	for name in clang clang++ clang-cl clang-cpp; do
		ln -s "$name" "$llvm/bin/amd$name"
		ln -s "../lib/llvm/bin/amd$name" "$1/bin/amd$name"
	done
	ln -s lld "$llvm/bin/amdlld"
	ln -s flang-new "$llvm/bin/amdflang"
	for name in amdlld amdflang amdgpu-arch; do ln -s "../lib/llvm/bin/$name" "$1/bin/$name"; done
	# Debian's hipcc is older than the clang beside it, and makes the name of its
	# directory of the full version.
	ln -s 16 "$llvm/lib/clang/16.0.6"
	ln -s amdgpu-arch "$llvm/bin/offload-arch"
	ln -s ../lib/llvm/bin/offload-arch "$1/bin/offload-arch"
	# The driver reads the file named as it was called, from its own directory.
	printf -- "--rocm-path='<CFGDIR>/../../..'\n-frtlib-add-rpath\n" >"$llvm/bin/rocm.cfg"
	for name in clang clang++ clang-cpp; do echo '@rocm.cfg' >"$llvm/bin/$name.cfg"; done
}

copy_licenses() { # TREE: as AMD names them, beside what they are of
	local dir
	for dir in rocminfo:rocminfo rocm-device-libs:amd-device-libs libamd-comgr2:amd-comgr libhsa-runtime64-1:hsa-rocr; do
		mkdir -p "$1/share/doc/${dir#*:}"
		cp -L "$1/share/doc/${dir%:*}/copyright" "$1/share/doc/${dir#*:}/LICENSE.md"
	done
	cp -L "$1/share/doc/llvm-16/copyright" "$1/lib/llvm/LICENSE.TXT"
}

# check_closure makes sure that what a program needs is in the tree, save for
# the C library and the compiler's own.
check_closure() { # TREE
	local missing
	missing=$(comm -23 \
		<(find "$1" -type f ! -path '*/foreign/*' -exec readelf -dW {} + 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u) \
		<(find "$1" -name '*.so*' -printf '%f\n' | sort -u) |
		grep -vE '^(ld-linux(-x86-64)?|libc|libm|libgcc_s|libstdc\+\+|libdl|libpthread|librt|libresolv)\.so\.' || true)
	[[ -z $missing ]] || die "libraries that no listed package has: $(tr '\n' ' ' <<<"$missing")"
}
