use super::*;
use crate::model::{INTEL_CYCLES, perf_metrics::SLOTS_P};
use crate::sys::scripted::ScriptedKernel;

const EVENTS: &str = "/sys/bus/event_source/devices/cpu/events";

fn cpu(model: u32) -> Identity {
    Identity { vendor: "GenuineIntel".into(), family: 6, model, name: "a CPU".into(), ..Identity::default() }
}

fn refused(kernel: &ScriptedKernel, cpu: &Identity) -> String {
    let error = pmu(kernel, cpu).unwrap_err();
    assert_eq!(error.code(), -libc::ENODEV);
    error.to_string()
}

#[test]
fn sapphire_rapids_has_two_levels_and_ice_lake_one_whatever_opens() {
    let kernel = ScriptedKernel::sapphire_rapids();
    assert_eq!(pmu(&kernel, &cpu(0x8f)).unwrap().level, 2);
    assert_eq!(pmu(&kernel, &cpu(0x6a)).unwrap().level, 1);
    kernel.remove(&format!("{EVENTS}/topdown-heavy-ops"));
    assert_eq!(pmu(&kernel, &cpu(0x8f)).unwrap().level, 1);
}

#[test]
fn a_hybrid_cpu_is_measured_on_its_p_cores() {
    let kernel = ScriptedKernel::sapphire_rapids();
    kernel.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
    kernel.add("/sys/bus/event_source/devices/cpu_core/cpus", "0-2,4\n");
    let found = pmu(&kernel, &cpu(0x97)).unwrap();
    assert_eq!(found.name, "cpu_core");
    assert!(found.covers(2) && found.covers(4) && !found.covers(3));
}

#[test]
fn general_counters_need_a_core_that_is_known_and_told_apart() {
    let leader =
        |kernel: &ScriptedKernel, model| counters(kernel, &cpu(model), 0).map(|(_, plan)| plan.leader.event);
    let kernel = ScriptedKernel::sapphire_rapids();
    assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS);
    kernel.remove(&format!("{EVENTS}/slots"));
    assert_eq!(leader(&kernel, 0x8f).unwrap(), SLOTS_P, "a virtual machine, or an old kernel");
    assert!(leader(&kernel, 0xbd).is_err(), "one PMU for all cores of a hybrid CPU");
    assert!(leader(&kernel, 0xfe).is_err(), "unknown");
    kernel.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
    kernel.add("/sys/bus/event_source/devices/cpu_core/cpus", "0-2\n");
    assert_eq!(leader(&kernel, 0xbd).unwrap(), SLOTS_P);
    assert_eq!(counters(&kernel, &cpu(0xbd), 1).unwrap().1.members.len(), 3);
}

#[test]
fn a_skylake_is_counted_only_where_each_core_runs_one_thread() {
    const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
    let kernel = ScriptedKernel::sapphire_rapids();
    let plan = |cpu: &Identity| counters(&kernel, cpu, 0).map(|(_, plan)| plan);
    let refused = |cpu: &Identity, word: &str| {
        let error = plan(cpu).unwrap_err();
        assert!(error.code() == -libc::ENODEV && error.to_string().contains(word), "{error}");
    };
    refused(&cpu(0x55), "cannot be read");
    kernel.add(ACTIVE, "1\n");
    refused(&cpu(0x55), "SMT is on");
    kernel.add(ACTIVE, "0\n");
    let skylake = plan(&cpu(0x55)).unwrap();
    assert_eq!((skylake.leader, skylake.slots_each, skylake.general_counters()), (INTEL_CYCLES, 4, 7));
    let seven = [0x2c2, 0x10e, 0x19c, 0x100_010d, 0x400_019c, 0xc5, 0x104_01c3];
    assert!(skylake.members.iter().map(|event| event.config).eq(seven));
    refused(&Identity { hypervisor: Some("KVM".into()), ..cpu(0x55) }, "on the host");
    kernel.add(&format!("{EVENTS}/topdown-slots-issued"), "event=0xe,umask=0x2\n");
    refused(&cpu(0x55), "takes this CPU for another");
}

#[test]
fn e_cores_give_level_2_where_their_counters_hold_it_beside_the_watchdog() {
    const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
    const LEVEL_2: [u64; 4] = [0x7271, 0x0174, 0x0473, 0x0373];
    let kernel = ScriptedKernel::default();
    kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
    kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x3c\n");
    let level = |model, level| {
        let (pmu, plan) = counters(&kernel, &cpu(model), level).unwrap();
        let configs: Vec<_> = plan.members.iter().map(|event| event.config).collect();
        (pmu.level, configs, plan.no_deeper.to_string())
    };
    for (watchdog, gracemont, crestmont) in [("0\n", 2, 2), ("1\n", 1, 2)] {
        kernel.add(WATCHDOG, watchdog);
        let (deepest, configs, no_deeper) = level(0xbe, 0);
        let why = if gracemont == 1 { "watchdog" } else { "machine clears" };
        assert!(deepest == gracemont && no_deeper.contains(why), "{no_deeper}");
        let six = [0xc2, 0x71, 0x74, 0x7271, 0x0174, 0x0473]; // all that Gracemont has
        assert_eq!(configs, six[..if gracemont == 1 { 3 } else { 6 }]);
        let (deepest, configs, no_deeper) = level(0xaf, 0);
        assert!(deepest == crestmont && no_deeper.contains("level 3 takes 22"), "{no_deeper}");
        assert_eq!((&configs[..3], &configs[3..]), (&[0x72, 0x71, 0x74][..], &LEVEL_2[..]));
        assert_eq!(level(0xdd, 0).1[..3], [0x2c2, 0x19c, 0x2a4], "Darkmont");
        assert_eq!(level(0xaf, 1).1, [0x72, 0x71, 0x74]);
        assert_eq!(level(0x86, 0), (1, vec![0xc2, 0x71, 0x74], String::new()), "Tremont has four counters");
    }
}

#[test]
fn a_subtree_of_zen_is_counted_where_six_counters_hold_it() {
    use crate::model::metrics::*;
    const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
    const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
    let kernel = ScriptedKernel::default();
    kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
    kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x76\n");
    kernel.add(ACTIVE, "0\n");
    let zen = |family, model| Identity { vendor: "AuthenticAMD".into(), family, ..cpu(model) };
    let fifths = |cpu: &Identity| {
        [TD_NODE_RETIRING, TD_NODE_FRONTEND_BOUND, TD_NODE_BAD_SPECULATION, TD_NODE_BACKEND_BOUND].map(
            |root| {
                let (pmu, plan) = subtree(&kernel, cpu, root, 0).unwrap();
                assert_eq!((pmu.level, plan.general_counters()), (2, 6));
                let [.., fourth, fifth] = plan.members[..] else { unreachable!() };
                (fourth.config, fifth.config)
            },
        )
    };
    const CONTENTION: u64 = 0x1_0000_60a0;
    let [retiring, backend] = [(CONTENTION, 0x1_0000_00c2), (0x2d6, 0xa2d6)];
    kernel.add(WATCHDOG, "0\n");
    let zen_4 = [retiring, (CONTENTION, 0x1_0600_01a0), (0xc3, 0x96), backend];
    let zen_5 = [retiring, (CONTENTION, 0x1_0800_01a0), (0xc3, 0x19f), backend];
    assert_eq!(fifths(&zen(0x19, 0x11)), zen_4);
    assert_eq!((fifths(&zen(0x1a, 0x02)), fifths(&zen(0x1a, 0x50))), (zen_5, zen_5));
    assert_eq!(counters(&kernel, &zen(0x19, 0x11), 0).unwrap().1.members.len(), 4, "level 1 by default");
    let refused = |cpu: &Identity, root, code: i32, word: &str| {
        let error = subtree(&kernel, cpu, root, 0).unwrap_err();
        assert!(error.code() == -code && error.to_string().contains(word), "{error}");
    };
    kernel.add(ACTIVE, "1\n"); // whose slots are the other thread's?
    refused(&zen(0x19, 0x11), TD_NODE_BACKEND_BOUND, libc::ENODEV, "SMT is on");
    refused(&zen(0x19, 0x11), TD_NODE_BAD_SPECULATION, libc::ENODEV, "SMT is on");
    assert!(subtree(&kernel, &zen(0x19, 0x11), TD_NODE_RETIRING, 0).is_ok());
    assert!(subtree(&kernel, &zen(0x19, 0x11), TD_NODE_RETIRING, 2).is_ok());
    let error = subtree(&kernel, &zen(0x19, 0x11), TD_NODE_RETIRING, 1).unwrap_err(); // of level 1 it has nothing
    assert!(error.code() == -libc::EINVAL && error.to_string().contains("set it to 2"), "{error}");
    kernel.add(WATCHDOG, "1\n");
    refused(&zen(0x19, 0x11), TD_NODE_RETIRING, libc::ENOTSUP, "nmi_watchdog=0");
    refused(&cpu(0x86), TD_NODE_RETIRING, libc::ENOTSUP, "leave td_options.subtree out");
    refused(
        &zen(0x19, 0x01),
        TD_NODE_RETIRING,
        libc::ENODEV,
        "it is a Zen 3: it has no events that count slots",
    );
}

/// The encodings of what a subtree counts.
fn configs_of(kernel: &ScriptedKernel, cpu: &Identity, node: u32) -> (u32, Vec<u64>) {
    let (pmu, plan) = subtree(kernel, cpu, node, 0).unwrap();
    (pmu.level, plan.members.iter().map(|event| event.config).collect())
}

#[test]
fn level_3_of_e_cores_is_counted_by_subtree_where_their_counters_hold_it() {
    use crate::model::metrics::*;
    const WATCHDOG: &str = "/proc/sys/kernel/nmi_watchdog";
    let kernel = ScriptedKernel::default();
    kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
    kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x3c\n");
    kernel.add(WATCHDOG, "0\n");
    let nodes = [
        TD_NODE_IFETCH_LATENCY,
        TD_NODE_IFETCH_BANDWIDTH,
        TD_NODE_MACHINE_CLEARS,
        TD_NODE_CORE_BOUND,
        TD_NODE_RESOURCE_BOUND,
    ];
    let below: [&[u64]; 5] = [
        &[0x7271, 0x2071, 0x1071, 0x0271, 0x4071],
        &[0x7271, 0x0171, 0x0871, 0x0471, 0x8071],
        &[0x0373, 0x0173, 0x0273],
        &[0x0174, 0x1074],
        &[0x0174, 0x0274, 0x4074, 0x0874, 0x2074],
    ];
    for (model, level_1, most) in
        [(0xaf, [0x72, 0x71, 0x74], 8), (0xdd, [0x2c2, 0x19c, 0x2a4], 8), (0xbe, [0xc2, 0x71, 0x74], 6)]
    {
        for (node, below) in nodes.into_iter().zip(below) {
            // (what resource bound has no counter for is counted with core bound)
            let below: &[u64] =
                if most == 6 && node == TD_NODE_CORE_BOUND { &[0x0174, 0x0874, 0x2074] } else { below };
            let all: Vec<u64> = level_1.iter().chain(below).copied().take(most).collect();
            assert_eq!(configs_of(&kernel, &cpu(model), node), (3, all.clone()), "{model:#x} {node}");
            let above = subtree(&kernel, &cpu(model), node, 2).unwrap_err();
            assert!(above.code() == -libc::EINVAL && above.to_string().contains("set it to 3"), "{above}");
        }
    }
    let refused = |model, node, word: &str| {
        let error = subtree(&kernel, &cpu(model), node, 0).unwrap_err();
        assert!(error.code() == -libc::ENOTSUP && error.to_string().contains(word), "{error}");
    };
    refused(0xaf, TD_NODE_FRONTEND_BOUND, "ifetch_latency, ifetch_bandwidth");
    // (the default group has mispredicts beside machine clears)
    refused(0xaf, TD_NODE_BAD_SPECULATION, "machine_clears");
    refused(0xbe, TD_NODE_BAD_SPECULATION, "machine_clears");
    refused(0x86, TD_NODE_IFETCH_LATENCY, "leave td_options.subtree out"); // Tremont
    kernel.add(WATCHDOG, "1\n"); // it has one of eight, or of six
    for node in [TD_NODE_IFETCH_LATENCY, TD_NODE_IFETCH_BANDWIDTH, TD_NODE_RESOURCE_BOUND] {
        refused(0xaf, node, "nmi_watchdog=0");
    }
    for node in [TD_NODE_MACHINE_CLEARS, TD_NODE_CORE_BOUND] {
        assert_eq!(configs_of(&kernel, &cpu(0xaf), node).0, 3);
        refused(0xbe, node, "nmi_watchdog=0");
    }
}

#[test]
fn level_3_of_the_e_cores_of_a_hybrid_cpu_is_that_of_its_e_cores() {
    use crate::model::metrics::*;
    let kernel = ScriptedKernel::sapphire_rapids();
    for (file, text) in
        [("type", "10\n"), ("cpus", "4-7\n"), ("events/topdown-retiring", "event=0xc2,umask=0x02\n")]
    {
        kernel.add(&format!("/sys/bus/event_source/devices/cpu_atom/{file}"), text);
    }
    let (pmu, plan) = e_cores(&kernel, &cpu(0xbd), TD_NODE_MACHINE_CLEARS, 0).unwrap();
    assert_eq!((pmu.model.core, pmu.level, pmu.kind), ("Skymont, machine clears", 3, 10));
    assert_eq!(plan.members.last().unwrap().config, 0x0273);
    let error = e_cores(&kernel, &cpu(0xbd), TD_NODE_RETIRING, 0).unwrap_err();
    assert!(error.code() == -libc::ENOTSUP && error.to_string().contains("Skymont"), "{error}");
    assert!(subtree(&kernel, &cpu(0xbd), TD_NODE_MACHINE_CLEARS, 0).is_err(), "that would be the P-cores'");
}

#[test]
fn of_skylake_retiring_is_counted_and_backend_bound_is_refused_by_name_and_so_is_smt() {
    use crate::model::metrics::*;
    const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
    let kernel = ScriptedKernel::default();
    kernel.add("/sys/bus/event_source/devices/cpu/type", "4\n");
    kernel.add(&format!("{EVENTS}/cpu-cycles"), "event=0x3c\n");
    kernel.add(ACTIVE, "0\n");
    let six = vec![0x02c2, 0x010e, 0x019c, 0x0100_010d, 0x04c2, 0x00c0];
    assert_eq!(configs_of(&kernel, &cpu(0x55), TD_NODE_RETIRING), (2, six));
    let error = |node| subtree(&kernel, &cpu(0x55), node, 0).unwrap_err();
    let backend = error(TD_NODE_BACKEND_BOUND);
    assert!(
        backend.code() == -libc::ENOTSUP && backend.to_string().contains("backend bound, which takes 9"),
        "{backend}"
    );
    kernel.add(ACTIVE, "1\n");
    let retiring = error(TD_NODE_RETIRING);
    assert!(retiring.code() == -libc::ENODEV && retiring.to_string().contains("SMT is on"), "{retiring}");
}

#[test]
fn level_3_of_hip08_is_counted_by_subtree_and_a_node_of_level_2_is_among_its_roots() {
    use crate::model::metrics::*;
    const PMU: &str = "/sys/bus/event_source/devices/armv8_pmuv3_0";
    let kernel = ScriptedKernel::default();
    for (file, text) in [("type", "8\n"), ("cpus", "0-3\n"), ("events/cpu_cycles", "event=0x0011\n")] {
        kernel.add(&format!("{PMU}/{file}"), text);
    }
    let hip08 = Identity::of_midr(0x481f_d010);
    let level_1 = [0x08, 0x1b, 0x2014];
    for (nodes, below) in [
        (
            [TD_NODE_FRONTEND_BOUND, TD_NODE_FETCH_LATENCY],
            &[0x201d, 0x30, 0x2e, 0x27, 0x28, 0x10, 0x2013, 0x1001][..],
        ),
        (
            [TD_NODE_BRANCH_MISPREDICTS, TD_NODE_MACHINE_CLEARS],
            &[0x10, 0x2013, 0x1010, 0x1013, 0x1016, 0x100d, 0x2012],
        ),
        (
            [TD_NODE_MEMORY_BOUND, TD_NODE_CORE_BOUND],
            &[0x7001, 0x7004, 0x7005, 0x7002, 0x7003, 0x7006, 0x7007],
        ),
        ([TD_NODE_RESOURCE_BOUND; 2], &[0x7001, 0x2010, 0x2004, 0x2006, 0x2007, 0x2008, 0x201e, 0x2005]),
    ] {
        for node in nodes {
            let all: Vec<u64> = level_1.iter().chain(below).copied().collect();
            assert_eq!(configs_of(&kernel, &hip08, node), (3, all), "{node}");
        }
    }
    let error = subtree(&kernel, &hip08, TD_NODE_RETIRING, 0).unwrap_err();
    assert!(error.code() == -libc::ENOTSUP && error.to_string().contains("bad_speculation"), "{error}");
}

#[test]
fn level_2_of_ampere_one_n3_and_t410_is_counted_by_subtree() {
    use crate::model::metrics::*;
    const PMU: &str = "/sys/bus/event_source/devices/armv8_pmuv3_0";
    let kernel = ScriptedKernel::default();
    for (file, text) in [
        ("type", "8\n"),
        ("cpus", "0-3\n"),
        ("events/cpu_cycles", "event=0x0011\n"),
        ("events/stall_frontend", "event=0x0023\n"),
        ("events/br_mis_pred_retired", "event=0x0022\n"),
        ("caps/slots", "0x00000005\n"),
    ] {
        kernel.add(&format!("{PMU}/{file}"), text);
    }
    kernel.add("/proc/sys/kernel/nmi_watchdog", "1\n"); // of another CPU's timer
    let (bad, frontend, backend) = (TD_NODE_BAD_SPECULATION, TD_NODE_FRONTEND_BOUND, TD_NODE_BACKEND_BOUND);
    let ampere = [0x3a, 0x3b, 0x3d];
    let n3 = [0x3e, 0x3d, 0x3a, 0x3b, 0x8162];
    let t410 = [0x1e2, 0x3d, 0x3f, 0x3a, 0x3b];
    for (midr, node, level_1, below) in [
        (0xc00f_ac30, bad, &ampere[..], &[0x22, 0x120][..]),
        (0xc00f_ac30, frontend, &ampere, &[0x23, 0x3e, 0x11]),
        (0xc00f_ac30, backend, &ampere, &[0xd20e, 0xd20d, 0x11]),
        (0xc00f_ac40, bad, &ampere, &[0x22, 0x120]),
        (0xc00f_ac40, frontend, &ampere, &[0x23, 0x3e, 0x11]),
        (0xc00f_ac40, backend, &ampere, &[0x8167, 0xd20d, 0x11]),
        (0x410f_d8e0, frontend, &n3, &[0x8158]),
        (0x410f_d8e0, backend, &n3, &[0x8164]),
        (0x4e0f_0100, frontend, &t410, &[0x8158, 0x11]),
        (0x4e0f_0100, backend, &t410, &[0x8164, 0x11]),
    ] {
        let all = [level_1, below].concat();
        assert_eq!(configs_of(&kernel, &Identity::of_midr(midr), node), (2, all), "{midr:#x} {node}");
    }
    // what leads each takes the counter of cycles, or a general one
    let general = |midr| {
        let (_, plan) = subtree(&kernel, &Identity::of_midr(midr), backend, 0).unwrap();
        plan.general_counters()
    };
    assert_eq!([0xc00f_ac30, 0x410f_d8e0, 0x4e0f_0100].map(general), [6, 6, 7]);
    let error = |midr, node| subtree(&kernel, &Identity::of_midr(midr), node, 0).unwrap_err();
    let names = error(0xc00f_ac30, TD_NODE_RETIRING);
    assert!(names.to_string().contains("bad_speculation, frontend_bound, backend_bound"), "{names}");
    let none = error(0x410f_d493, frontend); // N2
    assert!(none.code() == -libc::ENOTSUP, "{none}");
    // the kernel does not know this core's event of that name
    kernel.add(&format!("{PMU}/events/stall_frontend"), "event=0x0024\n");
    assert_eq!(error(0xc00f_ac30, frontend).code(), -libc::ENODEV);
}

#[test]
fn an_arm64_core_is_counted_by_stalls_and_the_kernel_may_tell_its_width() {
    const PMU: &str = "/sys/bus/event_source/devices/armv8_pmuv3_0";
    let kernel = ScriptedKernel::default();
    for (file, text) in [
        ("type", "8\n"),
        ("cpus", "0-3\n"),
        ("events/cpu_cycles", "event=0x0011\n"),
        ("events/stall_slot_backend", "event=0x003d\n"),
    ] {
        kernel.add(&format!("{PMU}/{file}"), text);
    }
    let plan = |midr| {
        counters(&kernel, &Identity::of_midr(midr), 0).map(|(pmu, plan)| {
            let configs: Vec<_> = plan.members.iter().map(|event| event.config).collect();
            (pmu.name, pmu.level, plan.leader.event.config, plan.slots_each, configs, plan.unproven)
        })
    };
    let hip08 = vec![0x08, 0x1b, 0x2014, 0x201d, 0x10, 0x2013, 0x7001, 0x7004, 0x7005];
    assert_eq!(plan(0x481f_d010).unwrap(), ("armv8_pmuv3_0", 2, 0x11, 4, hip08, true));
    let slots = [0x3e, 0x3d, 0x3a, 0x3b];
    let n2 = [&slots[..], &[0x10]].concat();
    assert_eq!(plan(0x410f_d493).unwrap(), ("armv8_pmuv3_0", 1, 0x11, 5, n2, true));
    assert_eq!(plan(0x410f_d490).unwrap().4, [&slots[..], &[0x10, 0x11]].concat(), "r0p0");
    assert_eq!(plan(0x410f_d830).unwrap().4, [&slots[..], &[0x8162]].concat(), "V3");
    let t410 = plan(0x4e0f_0100).unwrap();
    assert_eq!((t410.2, t410.3, t410.4), (0x1e1, 1, vec![0x1e2, 0x3d, 0x3f, 0x3a, 0x3b]));
    let refused = |midr, word: &str| {
        let error = plan(midr).unwrap_err();
        assert!(error.code() == -libc::ENODEV && error.to_string().contains(word), "{error}");
    };
    refused(0xc00f_ac30, "does not tell the slots per cycle"); // and no document does
    refused(0x410f_d0c1, "`perf stat -e cycles,stalled-cycles-frontend,stalled-cycles-backend`"); // N1
    kernel.add(&format!("{PMU}/caps/slots"), "0x00000008\n");
    assert_eq!(plan(0xc00f_ac30).unwrap().3, 8);
    assert_eq!(plan(0x410f_d400).unwrap().3, 8);
    refused(0x410f_d493, "has 5 slots per cycle");
    kernel.add(&format!("{PMU}/events/stall_slot_backend"), "event=0x003e\n");
    refused(0x410f_d400, "takes this CPU for another");
}

#[test]
fn encodings_are_read_as_the_kernel_writes_them() {
    for (text, encoding) in [
        ("event=0x00,umask=0x4\n", Some(0x400)),
        ("event=0xa4,umask=0x02\0\0\0", Some(0x2a4)), // of a hybrid PMU
        ("event=60", Some(60)),
        ("event=0x100", None),
        ("event=0x3c,umask", None),
        ("event=0x3c,inv=1", None),
        ("event=", None),
        ("event=0x3c junk", None),
    ] {
        assert_eq!(config(text), encoding, "{text:?}");
    }
}

#[test]
fn each_blocker_is_named() {
    let old = ScriptedKernel::sapphire_rapids();
    old.remove(&format!("{EVENTS}/slots"));
    assert!(refused(&old, &cpu(0xad)).contains("newer kernel"));
    let guest = Identity { hypervisor: Some("KVM".into()), ..cpu(0x8f) };
    assert!(refused(&old, &guest).contains("virtual machine (KVM)"));

    let tremont = ScriptedKernel::sapphire_rapids();
    assert!(refused(&tremont, &cpu(0x86)).contains("a Tremont, which has no PERF_METRICS"));
    tremont.add(&format!("{EVENTS}/topdown-retiring"), "event=0xc2,umask=0x0\n");
    assert!(refused(&tremont, &cpu(0xfe)).contains("general counters"));
    assert!(refused(&tremont, &cpu(0x3f)).contains("Haswell"));

    let bare = ScriptedKernel::default();
    assert!(refused(&bare, &cpu(0x8f)).contains("/sys"));
    bare.add("/sys/bus/event_source/devices/software/type", "1\n");
    assert!(refused(&bare, &cpu(0x8f)).contains("no driver"));
    assert!(refused(&bare, &guest).contains("has no PMU"));
    let zen =
        Identity { vendor: "AuthenticAMD".into(), family: 0x1a, hypervisor: guest.hypervisor, ..cpu(0x02) };
    for (kernel, why) in [(&bare, "virtual machine (KVM) has no PMU"), (&ScriptedKernel::default(), "/sys")] {
        let error = counters(kernel, &zen, 0).unwrap_err().to_string();
        assert!(error.starts_with("no topdown counters on a CPU") && error.contains(why), "{error}");
    }

    let amd = Identity { vendor: "AuthenticAMD".into(), family: 0x19, ..Identity::default() };
    assert!(refused(&old, &amd).contains("Zen"));
    // of a core that has no such events a guest hears the same, whatever is asked for: its host has none either
    let guest = Identity { hypervisor: Some("KVM".into()), ..amd };
    for kernel in [&bare, &ScriptedKernel::default(), &old] {
        let registers = refused(kernel, &guest);
        assert!(registers.contains("it has no events that count slots"), "{registers}");
        assert_eq!(registers, counters(kernel, &guest, 0).unwrap_err().to_string());
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_missing() {
    let hidden = ScriptedKernel::sapphire_rapids();
    for (file, errno, word) in [
        ("slots", libc::EMFILE, "ulimit -n"),
        ("slots", libc::ENFILE, "fs.file-max"),
        ("topdown-heavy-ops", libc::EACCES, "make it readable"),
    ] {
        hidden.hide(&format!("{EVENTS}/{file}"), errno);
        let error = pmu(&hidden, &cpu(0x8f)).unwrap_err();
        assert_eq!(error.code(), -errno);
        assert!(error.to_string().contains(word) && error.to_string().contains(file), "{error}");
        hidden.add(&format!("{EVENTS}/slots"), "event=0x00,umask=0x4\n");
    }
    let masked = ScriptedKernel::default();
    masked.add("/sys/bus/event_source/devices/cpu/type", "4\n");
    assert!(refused(&masked, &cpu(0x8f)).contains("mount /sys"));
    let hybrid = ScriptedKernel::sapphire_rapids();
    hybrid.rename("/sys/bus/event_source/devices/cpu", "/sys/bus/event_source/devices/cpu_core");
    assert!(refused(&hybrid, &cpu(0x97)).contains("cpu_core/cpus is missing"), "or E-cores were P-cores");
}

#[test]
fn e_cores_are_those_of_a_hybrid_cpu_with_their_events() {
    let kernel = ScriptedKernel::sapphire_rapids();
    let refused = |cpu: &Identity| {
        let error = e_cores(&kernel, cpu, 0, 0).unwrap_err();
        assert_eq!(error.code(), -libc::ENOTSUP);
        error.to_string()
    };
    assert!(refused(&cpu(0x8f)).contains("no hybrid CPU"));
    assert!(refused(&cpu(0x97)).contains("cpu_atom"));
    let atom = "/sys/bus/event_source/devices/cpu_atom";
    kernel.add(&format!("{atom}/type"), "10\n");
    assert!(refused(&cpu(0x97)).contains("cpus is missing"));
    kernel.add(&format!("{atom}/cpus"), "4-7\n");
    for (event, text) in ["topdown-retiring", "topdown-fe-bound", "topdown-be-bound"].iter().zip([
        "event=0xc2,umask=0x0",
        "event=0x71,umask=0x0",
        "event=0x74,umask=0x0\0",
    ]) {
        kernel.add(&format!("{atom}/events/{event}"), text);
    }
    let (found, plan) = e_cores(&kernel, &cpu(0x97), 0, 0).unwrap();
    assert!(plan.members.iter().map(|event| event.config).eq([0xc2, 0x71, 0x74, 0x7271, 0x0174, 0x0473]));
    assert_eq!((plan.leader, plan.slots_each, plan.general_counters()), (INTEL_CYCLES, 5, 6));
    let error = e_cores(&kernel, &cpu(0xbd), 0, 0).unwrap_err();
    assert_eq!(error.code(), -libc::ENODEV);
    assert!(error.to_string().contains("on a Skymont it is 0x2c2"), "{error}");
    assert_eq!((found.kind, found.model.core, found.model.slots_per_cycle), (10, "Gracemont", 5));
    assert!(found.covers(4) && !found.covers(3));
}

#[test]
fn only_event_and_umask_make_a_config() {
    assert_eq!(config("event=0x00,umask=0x4\n"), Some(0x400));
    assert_eq!(config("event=0x0,umask=0x80"), Some(0x8000));
    assert_eq!(config("event=0xc2,umask=0x2\0\0\0"), Some(0x2c2));
    assert_eq!(config("event=0x9c,umask=0x1,cmask=0x1"), None);
    assert_eq!(config("event=0x100"), None);
    assert_eq!(config(""), None);
}
