//! Gives the shared library its SONAME; `abi/cc` adds the symbol versions.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=abi");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtopdown.so.0");
}
