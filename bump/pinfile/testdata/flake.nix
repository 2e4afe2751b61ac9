{
  # Bump with care: version = "7.0.0"; is what the first release had.
  description = "ROCm nightly, version = \"none\"; for one GPU";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
  inputs.utils.url = github:numtide/flake-utils;

  outputs = { self, nixpkgs, utils, version' ? "unused", ... }@inputs:
    let
      gpuarch = "gfx1151";
      version = "10.2.0a20260928"; # bumped by a robot
      srcHash = "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

      /* Once it was:
         version = "6.4.0";
         srcHash = "sha256-old";
      */
      mkRocmNightly = pkgs: pkgs.stdenvNoCC.mkDerivation {
        pname = "rocm-nightly-${gpuarch}-bin";
        inherit version;
        src = pkgs.fetchurl {
          url = "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-${gpuarch}-${version}.tar.gz";
          hash = srcHash;
        };
        installPhase = ''
          cat > $out/info <<END
          version = "${version}";
          srcHash = "not this one"; ''${literal} ''' quotes ''\n
          END
        '';
        meta = with pkgs.lib; { license = licenses.mit; platforms = [ "x86_64-linux" ]; };
      };
    in
    utils.lib.eachSystem [ "x86_64-linux" ] (system: {
      packages.default = mkRocmNightly nixpkgs.legacyPackages.${system};
    }) // {
      lib = { inherit gpuarch version srcHash mkRocmNightly; };
    };
}
