//! Which CPU is this, and is it a virtual one?

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid_count, CpuidResult};
use std::fmt;

/// What CPUID tells of a CPU, or MIDR_EL1 of arm64's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Vendor string, with its spaces; of arm64 the implementer.
    pub vendor: String,
    /// With the extended family; of arm64 [`ARM64`].
    pub family: u32,
    /// With the extended model; of arm64 the part number.
    pub model: u32,
    /// Revision of the model; of arm64 the variant in the upper four bits: 0x13 is r1p3.
    pub stepping: u32,
    /// Brand string.
    pub name: String,
    /// Name of the hypervisor, if there is one.
    pub hypervisor: Option<String>,
}

/// The family of CPUs that MIDR_EL1 identifies: they are all of one.
pub const ARM64: u32 = 0;

/// Implementers, by the number that MIDR_EL1 has for them.
const IMPLEMENTERS: [(u32, &str); 5] =
    [(0x41, "Arm"), (0x48, "HiSilicon"), (0x4e, "NVIDIA"), (0x46, "Fujitsu"), (0xc0, "Ampere")];

/// The implementer with this number.
#[must_use]
pub fn implementer(number: u32) -> String {
    let known = IMPLEMENTERS.iter().find(|(own, _)| *own == number);
    known.map_or_else(|| format!("implementer {number:#x}"), |(_, name)| (*name).into())
}

impl Identity {
    /// The CPU with this MIDR_EL1.
    pub fn of_midr(midr: u32) -> Identity {
        let (implementer, variant, part, revision) =
            (midr >> 24, midr >> 20 & 0xf, midr >> 4 & 0xfff, midr & 0xf);
        let vendor = self::implementer(implementer);
        let name = format!("{vendor} part {part:#x} r{variant}p{revision}");
        Identity {
            vendor,
            family: ARM64,
            model: part,
            stepping: variant << 4 | revision,
            name,
            hypervisor: None,
        }
    }

    /// The CPU with this signature (EAX of CPUID leaf 1).
    pub fn of(vendor: &str, signature: u32) -> Identity {
        let base = signature >> 8 & 0xf;
        let extended_family = if base == 0xf { signature >> 20 & 0xff } else { 0 };
        // By the base family, as the kernel's x86_model(): AMD's families from 15 on share it.
        let extended_model = if base >= 6 { signature >> 12 & 0xf0 } else { 0 };
        Identity {
            vendor: vendor.into(),
            family: base + extended_family,
            model: signature >> 4 & 0xf | extended_model,
            stepping: signature & 0xf,
            ..Identity::default()
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "this CPU" } else { &self.name };
        if self.family == ARM64 && !self.name.is_empty() {
            return f.write_str(name);
        }
        write!(f, "{name} ({} family {} model {:#x})", self.vendor.trim(), self.family, self.model)
    }
}

/// One leaf of CPUID.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // safe from Rust 1.94 on
pub fn cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    // SAFETY: every x86_64 CPU has CPUID; an unknown leaf gives zeros or another leaf's values.
    unsafe { __cpuid_count(leaf, subleaf) }
}

/// The CPU that runs this: by its architecture alone.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn identify() -> Identity {
    Identity { vendor: std::env::consts::ARCH.into(), ..Identity::default() }
}

/// The CPU that runs this.
#[cfg(target_arch = "aarch64")]
pub fn identify() -> Identity {
    let midr: u64;
    // SAFETY: getauxval has no preconditions.
    if unsafe { libc::getauxval(libc::AT_HWCAP) } & libc::HWCAP_CPUID == 0 {
        return Identity { vendor: "arm64".into(), ..Identity::default() };
    }
    // SAFETY: with HWCAP_CPUID the kernel lets user space read the register (its Documentation/arch/arm64/cpu-feature-registers).
    unsafe { std::arch::asm!("mrs {}, midr_el1", out(reg) midr, options(nomem, nostack, preserves_flags)) };
    Identity::of_midr(midr as u32)
}

/// The CPU that runs this.
#[cfg(target_arch = "x86_64")]
pub fn identify() -> Identity {
    let leaf = |n| {
        let r = cpuid(n, 0);
        [r.eax, r.ebx, r.ecx, r.edx]
    };
    let text = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take_while(|b| *b != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let [_, b, c, d] = leaf(0);
    let vendor = text(&[b, d, c]);
    let [signature, _, features, _] = leaf(1);
    let name = if leaf(0x8000_0000)[0] >= 0x8000_0004 {
        text(&[leaf(0x8000_0002), leaf(0x8000_0003), leaf(0x8000_0004)].concat()).trim().into()
    } else {
        String::new()
    };
    let hypervisor = (features >> 31 & 1 == 1).then(|| {
        let [_, b, c, d] = leaf(0x4000_0000);
        match text(&[b, c, d]).trim() {
            "KVMKVMKVM" => "KVM".into(),
            "TCGTCGTCGTCG" => "QEMU".into(),
            "Microsoft Hv" => "Hyper-V".into(),
            "VMwareVMware" => "VMware".into(),
            "XenVMMXenVMM" => "Xen".into(),
            "" => "unnamed hypervisor".into(),
            other => other.into(),
        }
    });
    Identity { name, hypervisor, ..Identity::of(&vendor, signature) }
}

/// Fills bytes. CPUs of x86-64 do so by one instruction that is microcode, so that events of microcode count.
pub fn fill_by_microcode(bytes: &mut [u8], with: u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the direction flag is clear as the ABI has it, and the bytes are the caller's.
    unsafe {
        std::arch::asm!("rep stosb", inout("rcx") bytes.len() => _, inout("rdi") bytes.as_mut_ptr() => _, in("al") with,
            options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    bytes.fill(with);
}

/// General-purpose counters of a thread, as CPUID tells (leaf 0xa); None: it does not.
#[must_use]
pub fn general_counters() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if cpuid(0, 0).eax >= 0xa {
        let eax = cpuid(0xa, 0).eax;
        return Some((eax >> 8 & 0xff) as usize).filter(|counters| eax & 0xff > 0 && *counters > 0);
    }
    None
}

/// Cycles per nanosecond of the time-stamp counter, as CPUID tells (leaf 0x15), or else the CPU's name, as perf has it
/// (tools/perf/arch/x86/util/tsc.c); None: neither does.
#[must_use]
pub fn tsc_ghz() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if cpuid(0, 0).eax >= 0x15 {
        let of = cpuid(0x15, 0);
        if of.eax > 0 && of.ebx > 0 && of.ecx > 0 {
            return Some(f64::from(of.ecx) * f64::from(of.ebx) / f64::from(of.eax) / 1e9);
        }
    }
    ghz_of_name(&identify().name)
}

/// "Some CPU @ 2.40GHz".
fn ghz_of_name(name: &str) -> Option<f64> {
    let (_, rate) = name.rsplit_once("@ ")?;
    let (number, each) = match rate.strip_suffix("GHz") {
        Some(number) => (number, 1.0),
        None => (rate.strip_suffix("MHz")?, 1000.0),
    };
    number.trim().parse::<f64>().ok().map(|number| number / each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_filled_and_no_others() {
        let mut bytes = [1u8; 9];
        fill_by_microcode(&mut bytes[2..7], 0xa5);
        assert_eq!(bytes, [1, 1, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 1, 1]);
        fill_by_microcode(&mut [], 7);
    }

    #[test]
    fn signatures_read_as_the_manuals_say() {
        for (vendor, signature, family, model, stepping) in [
            ("GenuineIntel", 0x0005_0654, 6, 0x55, 4),  // Skylake-SP
            ("GenuineIntel", 0x0005_065b, 6, 0x55, 11), // Cooper Lake
            ("GenuineIntel", 0x0006_06a6, 6, 0x6a, 6),  // Ice Lake server
            ("GenuineIntel", 0x0008_06f8, 6, 0x8f, 8),  // Sapphire Rapids
            ("GenuineIntel", 0x0009_0672, 6, 0x97, 2),  // Alder Lake
            ("GenuineIntel", 0x0001_06a5, 6, 0x1a, 5),  // Nehalem
            ("GenuineIntel", 0x0000_0f29, 15, 2, 9),    // Pentium 4
            ("GenuineIntel", 0x0000_0543, 5, 4, 3),     // Pentium MMX
            ("GenuineIntel", 0x000f_0543, 5, 4, 3),     // no extended model below family 6
            ("GenuineIntel", 0x0030_0f10, 18, 1, 0),    // Nova Lake
            ("AuthenticAMD", 0x00a1_0f11, 25, 0x11, 1), // Zen 4
            ("AuthenticAMD", 0x0083_0f10, 23, 0x31, 0), // Zen 2
            ("AuthenticAMD", 0x00b4_0f40, 26, 0x44, 0), // Zen 5
            ("AuthenticAMD", 0x0060_0f12, 21, 1, 2),    // Bulldozer
            ("HygonGenuine", 0x0090_0f02, 24, 0, 2),
            ("  Shanghai  ", 0x0003_07b0, 7, 0x3b, 0), // Zhaoxin
        ] {
            let cpu = Identity::of(vendor, signature);
            assert_eq!((cpu.family, cpu.model, cpu.stepping), (family, model, stepping), "{signature:#x}");
            assert_eq!(cpu.vendor, vendor);
        }
    }

    #[test]
    fn midr_tells_implementer_part_variant_and_revision() {
        for (midr, vendor, part, stepping, name) in [
            (0x481f_d010, "HiSilicon", 0xd01, 0x10, "HiSilicon part 0xd01 r1p0"),
            (0x410f_d493, "Arm", 0xd49, 3, "Arm part 0xd49 r0p3"),
            (0xc00f_ac30, "Ampere", 0xac3, 0, "Ampere part 0xac3 r0p0"),
            (0x4e0f_0100, "NVIDIA", 0x10, 0, "NVIDIA part 0x10 r0p0"),
            (0x612f_0221, "implementer 0x61", 0x22, 0x21, "implementer 0x61 part 0x22 r2p1"),
        ] {
            let cpu = Identity::of_midr(midr);
            assert_eq!(
                (cpu.vendor.as_str(), cpu.family, cpu.model, cpu.stepping),
                (vendor, ARM64, part, stepping)
            );
            assert_eq!(cpu.to_string(), name);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_cpu_that_runs_this_is_in_cpuinfo() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let value = |key: &str| {
            let line = info.lines().find(|line| line.split(':').next().unwrap().trim() == key).unwrap();
            line.split(": ").nth(1).unwrap().to_string()
        };
        let number = |key| value(key).parse::<u32>().unwrap();
        let cpu = identify();
        assert_eq!(cpu.vendor, value("vendor_id"));
        assert_eq!(
            [cpu.family, cpu.model, cpu.stepping],
            [number("cpu family"), number("model"), number("stepping")]
        );
    }

    #[test]
    fn a_name_may_have_the_rate() {
        assert_eq!(ghz_of_name("Intel(R) Xeon(R) Platinum 8260 CPU @ 2.40GHz"), Some(2.4));
        assert_eq!(ghz_of_name("Some CPU @ 800MHz"), Some(0.8));
        for name in ["", "Some CPU", "Some CPU @ fast", "Some CPU @ GHz"] {
            assert_eq!(ghz_of_name(name), None, "{name}");
        }
    }
}
