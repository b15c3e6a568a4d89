//! Gives the shared library its SONAME, and keeps it loaded: threads point the kernel to its restartable
//! sequences. `abi/cc` adds the symbol versions.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtopdown.so.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
