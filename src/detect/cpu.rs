//! Which CPU is this, and is it a virtual one?
#![forbid(unsafe_code)]

use std::fmt;

/// What CPUID tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub vendor: String,
    pub family: u32,
    pub model: u32,
    /// Brand string.
    pub name: String,
    /// Name of the hypervisor, if there is one.
    pub hypervisor: Option<String>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "this CPU" } else { &self.name };
        write!(f, "{name} ({} family {} model {:#x})", self.vendor, self.family, self.model)
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn identify() -> Identity {
    Identity { vendor: std::env::consts::ARCH.into(), ..Identity::default() }
}

/// Asks the CPU that runs this.
#[cfg(target_arch = "x86_64")]
pub(crate) fn identify() -> Identity {
    let leaf = |n| {
        let r = cpuid(n);
        [r.eax, r.ebx, r.ecx, r.edx]
    };
    let text = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take_while(|b| *b != 0).collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    };
    let [_, b, c, d] = leaf(0);
    let [signature, _, features, _] = leaf(1);
    let (family, model) = decode(signature);
    let name = if leaf(0x8000_0000)[0] >= 0x8000_0004 {
        text(&[leaf(0x8000_0002), leaf(0x8000_0003), leaf(0x8000_0004)].concat())
    } else {
        String::new()
    };
    let hypervisor = (features >> 31 & 1 == 1).then(|| {
        let [_, b, c, d] = leaf(0x4000_0000);
        match text(&[b, c, d]).as_str() {
            "KVMKVMKVM" => "KVM".into(),
            "TCGTCGTCGTCG" => "QEMU".into(),
            "Microsoft Hv" => "Hyper-V".into(),
            "VMwareVMware" => "VMware".into(),
            "XenVMMXenVMM" => "Xen".into(),
            "" => "unnamed hypervisor".into(),
            other => other.into(),
        }
    });
    Identity { vendor: text(&[b, d, c]), family, model, name, hypervisor }
}

#[cfg(target_arch = "x86_64")]
use crate::sys::rdpmc::cpuid;

/// Family and model of the signature in CPUID leaf 1.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn decode(signature: u32) -> (u32, u32) {
    let family = signature >> 8 & 0xf;
    let model = signature >> 4 & 0xf | signature >> 12 & 0xf0;
    if family == 0xf { (family + (signature >> 20 & 0xff), model) } else { (family, model) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_as_the_manuals_say() {
        assert_eq!(decode(0x000806f8), (6, 0x8f), "Sapphire Rapids");
        assert_eq!(decode(0x000606a6), (6, 0x6a), "Ice Lake server");
        assert_eq!(decode(0x00a10f11), (0x19, 0x11), "Zen 4");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_cpu_that_runs_this_has_a_vendor() {
        let cpu = identify();
        assert!(cpu.vendor.len() >= 9 && cpu.family > 0, "{cpu:?}");
    }
}
