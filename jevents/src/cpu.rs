//! A CPU in the words that name event files: GenuineIntel-6-55.

use topdown_seam::cpu::Identity;

/// VENDOR-FAMILY-MODEL.
pub fn id(cpu: &Identity) -> String {
    format!("{}-{}-{:X}", cpu.vendor, cpu.family, cpu.model)
}

/// VENDOR-FAMILY-MODEL-STEPPING.
pub fn id_with_stepping(cpu: &Identity) -> String {
    format!("{}-{:X}", id(cpu), cpu.stepping)
}

/// What its event files may be called, the best first.
pub fn ids(cpu: &Identity) -> Vec<String> {
    let mut ids = vec![id_with_stepping(cpu), id(cpu)];
    // Skylake-SP and Cascade Lake differ in the stepping alone. A download for all CPUs names them by one of theirs.
    if ids[1] == "GenuineIntel-6-55" {
        ids.insert(1, format!("{}-{}", ids[1], if cpu.stepping < 5 { 4 } else { 5 }));
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_the_event_files_have_them() {
        for (vendor, signature, name) in [
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
            let cpu = Identity::of(vendor, signature);
            assert_eq!(id_with_stepping(&cpu), name);
            assert_eq!(id(&cpu), name.rsplit_once('-').unwrap().0);
        }
    }

    #[test]
    fn the_stepping_comes_first_and_one_model_has_two_lists() {
        assert_eq!(
            ids(&Identity::of("GenuineIntel", 0x5_0657)),
            ["GenuineIntel-6-55-7", "GenuineIntel-6-55-5", "GenuineIntel-6-55"]
        );
        assert_eq!(ids(&Identity::of("GenuineIntel", 0x5_0652))[1], "GenuineIntel-6-55-4");
        assert_eq!(
            ids(&Identity::of("GenuineIntel", 0x6_06a6)),
            ["GenuineIntel-6-6A-6", "GenuineIntel-6-6A"]
        );
    }
}
