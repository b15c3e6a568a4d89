//! Which CPU this is, in the words that name event files: GenuineIntel-6-55.

/// What CPUID tells of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    vendor: String,
    family: u32,
    model: u32,
    stepping: u32,
}

impl Cpu {
    /// The CPU that runs this.
    pub fn this() -> Self {
        let [_, b, c, d] = cpuid(0);
        let vendor: Vec<u8> = [b, d, c].iter().flat_map(|word| word.to_le_bytes()).collect();
        Cpu::of(&String::from_utf8_lossy(&vendor), cpuid(1)[0])
    }

    /// The CPU with this signature (EAX of CPUID leaf 1).
    pub fn of(vendor: &str, signature: u32) -> Self {
        let base = signature >> 8 & 0xf;
        let extended_family = if base == 0xf { signature >> 20 & 0xff } else { 0 };
        // By the base family, which AMD's families from 15 on share: 25 (Zen 4) has an extended model, too.
        let extended_model = if base >= 6 { signature >> 12 & 0xf0 } else { 0 };
        Cpu {
            vendor: vendor.into(),
            family: base + extended_family,
            model: signature >> 4 & 0xf | extended_model,
            stepping: signature & 0xf,
        }
    }

    /// VENDOR-FAMILY-MODEL.
    pub fn id(&self) -> String {
        format!("{}-{}-{:X}", self.vendor, self.family, self.model)
    }

    /// VENDOR-FAMILY-MODEL-STEPPING.
    pub fn id_with_stepping(&self) -> String {
        format!("{}-{:X}", self.id(), self.stepping)
    }

    /// What its event files may be called, the best first.
    pub fn ids(&self) -> Vec<String> {
        let mut ids = vec![self.id_with_stepping(), self.id()];
        // Skylake-SP and Cascade Lake differ in the stepping alone. A download for all CPUs names them by one of theirs.
        if ids[1] == "GenuineIntel-6-55" {
            ids.insert(1, format!("{}-{}", ids[1], if self.stepping < 5 { 4 } else { 5 }));
        }
        ids
    }
}

fn cpuid(leaf: u32) -> [u32; 4] {
    #[allow(unused_unsafe)] // safe from Rust 1.94 on
    // SAFETY: every x86_64 CPU has CPUID; an unknown leaf gives zeros or another leaf's values.
    let r = unsafe { std::arch::x86_64::__cpuid(leaf) };
    [r.eax, r.ebx, r.ecx, r.edx]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_the_event_files_have_them() {
        for (vendor, signature, id) in [
            ("GenuineIntel", 0x0005_0654, "GenuineIntel-6-55-4"), // Skylake-SP
            ("GenuineIntel", 0x0005_065b, "GenuineIntel-6-55-B"), // Cooper Lake
            ("GenuineIntel", 0x0008_06f8, "GenuineIntel-6-8F-8"), // Sapphire Rapids
            ("GenuineIntel", 0x0009_0672, "GenuineIntel-6-97-2"), // Alder Lake
            ("GenuineIntel", 0x0001_06a5, "GenuineIntel-6-1A-5"), // Nehalem
            ("GenuineIntel", 0x0000_0f29, "GenuineIntel-15-2-9"), // Pentium 4
            ("GenuineIntel", 0x0000_0543, "GenuineIntel-5-4-3"),  // Pentium MMX
            ("GenuineIntel", 0x0030_0f10, "GenuineIntel-18-1-0"), // Nova Lake
            ("AuthenticAMD", 0x00a1_0f11, "AuthenticAMD-25-11-1"), // Zen 4
            ("AuthenticAMD", 0x0083_0f10, "AuthenticAMD-23-31-0"), // Zen 2
            ("AuthenticAMD", 0x00b4_0f40, "AuthenticAMD-26-44-0"), // Zen 5
            ("AuthenticAMD", 0x0060_0f12, "AuthenticAMD-21-1-2"), // Bulldozer
            ("HygonGenuine", 0x0090_0f02, "HygonGenuine-24-0-2"),
            ("  Shanghai  ", 0x0003_07b0, "  Shanghai  -7-3B-0"), // Zhaoxin
        ] {
            let cpu = Cpu::of(vendor, signature);
            assert_eq!(cpu.id_with_stepping(), id);
            assert_eq!(cpu.id(), id.rsplit_once('-').unwrap().0);
        }
    }

    #[test]
    fn the_stepping_comes_first_and_one_model_has_two_lists() {
        assert_eq!(
            Cpu::of("GenuineIntel", 0x5_0657).ids(),
            ["GenuineIntel-6-55-7", "GenuineIntel-6-55-5", "GenuineIntel-6-55"]
        );
        assert_eq!(Cpu::of("GenuineIntel", 0x5_0652).ids()[1], "GenuineIntel-6-55-4");
        assert_eq!(Cpu::of("GenuineIntel", 0x6_06a6).ids(), ["GenuineIntel-6-6A-6", "GenuineIntel-6-6A"]);
    }

    #[test]
    fn the_cpu_that_runs_this_is_in_cpuinfo() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let value = |key: &str| {
            let line = info.lines().find(|line| line.split(':').next().unwrap().trim() == key).unwrap();
            line.split(": ").nth(1).unwrap().to_string()
        };
        let number = |key| value(key).parse::<u32>().unwrap();
        let cpu = Cpu::this();
        assert_eq!(cpu.vendor, value("vendor_id"));
        assert_eq!(
            [cpu.family, cpu.model, cpu.stepping],
            [number("cpu family"), number("model"), number("stepping")]
        );
    }
}
