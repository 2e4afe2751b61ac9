package omit

// llvm is what the rule of that name takes out. Programs are listed one by one
// where a pattern could come to match one that a driver starts.
var llvm = []string{
	"lib/llvm/include/bolt/**", "lib/llvm/include/clang/**", "lib/llvm/include/clang-c/**", "lib/llvm/include/clang-tidy/**",
	"lib/llvm/include/lld/**", "lib/llvm/include/lldb/**", "lib/llvm/include/llvm/**", "lib/llvm/include/llvm-c/**",
	"lib/llvm/include/mlir/**", "lib/llvm/include/mlir-c/**", "lib/llvm/include/polly/**",
	"lib/llvm/lib/cmake/clang/**", "lib/llvm/lib/cmake/flang/**", "lib/llvm/lib/cmake/lld/**", "lib/llvm/lib/cmake/lldb/**",
	"lib/llvm/lib/cmake/llvm/**", "lib/llvm/lib/cmake/mlir/**", "lib/llvm/lib/cmake/polly/**",
	"lib/llvm/lib/objects-*/**", "lib/llvm/lib/libear/**", "lib/llvm/lib/libscanbuild/**", "lib/llvm/lib/python*/**/lldb/**",
	"lib/llvm/share/clang/**", "lib/llvm/share/clang-doc/**", "lib/llvm/share/opt-viewer/**", "lib/llvm/share/scan-build/**",
	"lib/llvm/share/scan-view/**",
	"lib/llvm/libexec/*-analyzer", "lib/llvm/libexec/analyze-*", "lib/llvm/libexec/intercept-*",

	// Libraries, static and shared: those that a program which stays is linked
	// with are kept for it.
	"lib/llvm/lib/libCUF*.a", "lib/llvm/lib/libFIR*", "lib/llvm/lib/libHLFIR*", "lib/llvm/lib/libFortran*.a", "lib/llvm/lib/libLLVM*",
	"lib/llvm/lib/libLTO*", "lib/llvm/lib/libMIF*.a", "lib/llvm/lib/libMLIR*", "lib/llvm/lib/libPolly*", "lib/llvm/lib/libRemarks*",
	"lib/llvm/lib/libclang*", "lib/llvm/lib/libdynamic_library_lib.a", "lib/llvm/lib/libfindAllSymbols.a", "lib/llvm/lib/libflang*.a",
	"lib/llvm/lib/liblld*", "lib/llvm/lib/libmlir_*", "lib/llvm/lib/LLVMPolly.so", "lib/llvm/lib/LLVMgold.so",

	"lib/llvm/bin/FileCheck", "lib/llvm/bin/UnicodeNameMappingGenerator", "lib/llvm/bin/analyze-build", "lib/llvm/bin/bbc",
	"lib/llvm/bin/bugpoint", "lib/llvm/bin/c-index-test", "lib/llvm/bin/clang-apply-replacements", "lib/llvm/bin/clang-change-namespace",
	"lib/llvm/bin/clang-check", "lib/llvm/bin/clang-doc", "lib/llvm/bin/clang-extdef-mapping", "lib/llvm/bin/clang-format",
	"lib/llvm/bin/clang-format-diff*", "lib/llvm/bin/clang-include-cleaner", "lib/llvm/bin/clang-include-fixer", "lib/llvm/bin/clang-move",
	"lib/llvm/bin/clang-pseudo", "lib/llvm/bin/clang-query", "lib/llvm/bin/clang-refactor", "lib/llvm/bin/clang-rename",
	"lib/llvm/bin/clang-reorder-fields", "lib/llvm/bin/clang-repl", "lib/llvm/bin/clang-tblgen", "lib/llvm/bin/clang-tidy",
	"lib/llvm/bin/clang-tidy-diff*", "lib/llvm/bin/clangd", "lib/llvm/bin/clangd-*", "lib/llvm/bin/count", "lib/llvm/bin/diagtool",
	"lib/llvm/bin/dsymutil", "lib/llvm/bin/f18-parse-demo", "lib/llvm/bin/find-all-symbols", "lib/llvm/bin/fir-lsp-server",
	"lib/llvm/bin/fir-opt", "lib/llvm/bin/flang-to-external-fc", "lib/llvm/bin/git-clang-format", "lib/llvm/bin/hmaptool",
	"lib/llvm/bin/intercept-build", "lib/llvm/bin/lldb", "lib/llvm/bin/lldb-*", "lib/llvm/bin/lli", "lib/llvm/bin/lli-child-target",
	"lib/llvm/bin/llvm-PerfectShuffle", "lib/llvm/bin/llvm-bcanalyzer", "lib/llvm/bin/llvm-bolt*", "lib/llvm/bin/llvm-c-test",
	"lib/llvm/bin/llvm-cat", "lib/llvm/bin/llvm-cfi-verify", "lib/llvm/bin/llvm-cgdata", "lib/llvm/bin/llvm-config",
	"lib/llvm/bin/llvm-ctxprof-util", "lib/llvm/bin/llvm-cvtres", "lib/llvm/bin/llvm-cxxdump", "lib/llvm/bin/llvm-cxxmap",
	"lib/llvm/bin/llvm-debuginfo-analyzer", "lib/llvm/bin/llvm-debuginfod", "lib/llvm/bin/llvm-debuginfod-find", "lib/llvm/bin/llvm-diff",
	"lib/llvm/bin/llvm-dwarfutil", "lib/llvm/bin/llvm-exegesis", "lib/llvm/bin/llvm-extract", "lib/llvm/bin/llvm-gsymutil",
	"lib/llvm/bin/llvm-ifs", "lib/llvm/bin/llvm-ir2vec", "lib/llvm/bin/llvm-jitlink", "lib/llvm/bin/llvm-jitlink-executor",
	"lib/llvm/bin/llvm-libtool-darwin", "lib/llvm/bin/llvm-lipo", "lib/llvm/bin/llvm-lto", "lib/llvm/bin/llvm-lto2", "lib/llvm/bin/llvm-mca",
	"lib/llvm/bin/llvm-ml", "lib/llvm/bin/llvm-ml64", "lib/llvm/bin/llvm-modextract", "lib/llvm/bin/llvm-mt",
	"lib/llvm/bin/llvm-omp-kernel-replay", "lib/llvm/bin/llvm-opt-report", "lib/llvm/bin/llvm-pdbutil", "lib/llvm/bin/llvm-profgen",
	"lib/llvm/bin/llvm-rc", "lib/llvm/bin/llvm-readtapi", "lib/llvm/bin/llvm-reduce", "lib/llvm/bin/llvm-remark-size-diff",
	"lib/llvm/bin/llvm-remarkutil", "lib/llvm/bin/llvm-rtdyld", "lib/llvm/bin/llvm-sim", "lib/llvm/bin/llvm-stress",
	"lib/llvm/bin/llvm-tapi-diff", "lib/llvm/bin/llvm-tblgen", "lib/llvm/bin/llvm-tli-checker", "lib/llvm/bin/llvm-windres",
	"lib/llvm/bin/llvm-xray", "lib/llvm/bin/merge-fdata", "lib/llvm/bin/mlir-*", "lib/llvm/bin/modularize", "lib/llvm/bin/not",
	"lib/llvm/bin/obj2yaml", "lib/llvm/bin/perf2bolt", "lib/llvm/bin/pp-trace", "lib/llvm/bin/reduce-chunk-list",
	"lib/llvm/bin/run-clang-tidy*", "lib/llvm/bin/sancov", "lib/llvm/bin/sanstats", "lib/llvm/bin/scan-build", "lib/llvm/bin/scan-build-py",
	"lib/llvm/bin/scan-view", "lib/llvm/bin/split-file", "lib/llvm/bin/tblgen-lsp-server", "lib/llvm/bin/tblgen-to-irdl",
	"lib/llvm/bin/tco", "lib/llvm/bin/verify-uselistorder", "lib/llvm/bin/yaml-bench", "lib/llvm/bin/yaml2obj",
}
