//! What the Firefox Profiler loads, read as its types have it (src/types/profile.ts there).

use super::*;

/// Columns of a table of the Firefox Profiler, after a look at their lengths.
fn columns(table: &serde_json::Value) -> BTreeMap<String, Vec<serde_json::Value>> {
    let length = table["length"].as_u64().unwrap() as usize;
    let columns = table.as_object().unwrap().iter().filter_map(|(name, column)| {
        let column = column.as_array()?.clone();
        assert_eq!(column.len(), length, "{name}");
        Some((name.clone(), column))
    });
    columns.collect()
}

#[test]
fn what_the_firefox_profiler_loads_has_stacks_by_value_and_categories() {
    let document: serde_json::Value =
        serde_json::from_slice(&View::Firefox.write(&profile(), &HEADING)).unwrap();
    let shared = &document["shared"];
    let [stacks, frames, functions, resources, sources] =
        ["stackTable", "frameTable", "funcTable", "resourceTable", "sources"]
            .map(|name| columns(&shared[name]));
    assert!(columns(&shared["nativeSymbols"]).values().all(Vec::is_empty));
    let place = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    let string = |number: &serde_json::Value| shared["stringArray"][place(number)].as_str().unwrap();
    let categories = document["meta"]["categories"].as_array().unwrap();
    // functions, modules, colours and lines of a stack, the outermost first
    let stack = |mut number: usize| {
        let mut all = Vec::new();
        loop {
            let frame = place(&stacks["frame"][number]);
            let category = place(&frames["category"][frame]);
            assert!(place(&frames["subcategory"][frame]) == 0 && category < categories.len());
            let function = place(&frames["func"][frame]);
            let resource = functions["resource"][function].as_u64().map(|resource| resource as usize);
            let module = resource.map_or("", |resource| {
                let library = &document["libs"][place(&resources["lib"][resource])];
                assert_eq!(library["name"], string(&resources["name"][resource]));
                library["name"].as_str().unwrap()
            });
            let colour = categories[category]["color"].as_str().unwrap();
            let file = functions["source"][function].as_u64().map(|source| {
                assert!(sources["uuid"][source as usize].is_null());
                string(&sources["filename"][source as usize])
            });
            let line = file.zip(frames["line"][frame].as_u64());
            all.insert(0, (string(&functions["name"][function]), module, colour, line));
            match stacks["prefix"][number].as_u64() {
                Some(prefix) if (prefix as usize) < number => number = prefix as usize,
                Some(prefix) => panic!("the stack {prefix} comes after {number}, which it is a part of"),
                None => return all,
            }
        }
    };
    let threads: Vec<(&str, Vec<_>)> = (document["threads"].as_array().unwrap().iter())
        .map(|thread| {
            let samples = columns(&thread["samples"]);
            let rows = samples["stack"].iter().zip(&samples["time"]).zip(&samples["weight"]);
            let rows = rows.map(|((stack, time), weight)| (stack.clone(), time.as_f64(), weight.as_f64()));
            assert_eq!(thread["samples"]["weightType"], "tracing-ms");
            (thread["name"].as_str().unwrap(), rows.collect())
        })
        .collect();
    let names: Vec<&str> = threads.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "thread 7",
            "thread 8",
            "CPU time",
            "retiring",
            "bad speculation",
            "frontend bound",
            "backend bound",
            "unknown"
        ]
    );
    let core = ("Sunny, Willow or Cypress Cove, bare counters", "", "lightblue", None);
    let f = |line| ("f(\"x\", int)", "a.out", "lightblue", Some(("/src/a.c", line)));
    // (of main nothing is known, nor of a function that has no shares)
    let main = |line| ("main", "a.out", "grey", Some(("/src/a.c", line)));
    let untold = ("no;name", "", "grey", None);
    let read = |rows: &[(serde_json::Value, Option<f64>, Option<f64>)]| -> Vec<_> {
        let stacks = rows.iter().filter(|(number, ..)| !number.is_null());
        stacks.map(|(number, time, weight)| (stack(place(number)), time.unwrap(), weight.unwrap())).collect()
    };
    assert_eq!(
        read(&threads[2].1),
        [
            (vec![core, f(1)], 0.0, 500.0),
            (vec![core, main(20), f(1)], 500.0, 1500.0),
            (vec![core, main(20), f(2)], 2000.0, 1000.0),
            (vec![core, main(30), untold], 3000.0, 1000.0)
        ]
    );
    assert_eq!(
        read(&threads[6].1),
        [
            (vec![core, f(1)], 0.0, 125.0),
            (vec![core, main(20), f(1)], 500.0, 375.0),
            (vec![core, main(20), f(2)], 2000.0, 250.0)
        ]
    );
    assert_eq!(read(&threads[7].1), [(vec![core, main(30), untold], 3000.0, 1000.0)]);
    let second: Vec<_> =
        (0..10).map(|k| (vec![core, main(30), untold], 1100.0 + 200.0 * f64::from(k), 100.0)).collect();
    assert_eq!(read(&threads[1].1), second);
    assert_eq!(
        read(&threads[0].1)[24..26],
        [(vec![core, main(20), f(2)], 2500.0, 100.0), (vec![core, f(1)], 2600.0, 100.0)]
    );
    // a function is one, whatever its lines
    assert_eq!((functions["name"].len(), sources["filename"].len()), (4, 1));
    for (_, rows) in &threads[2..] {
        assert_eq!(rows.last().unwrap(), &(serde_json::Value::Null, Some(4000.0), Some(0.0)));
    }
    let meta = &document["meta"];
    assert_eq!(
        (meta["preprocessedProfileVersion"].as_u64(), &meta["product"]),
        (Some(60), &"./a.out".into())
    );
    assert_eq!(meta["extra"][0]["entries"][1]["value"], HEADING.occasion);
}

/// Times, and what says which thread was when.
#[test]
fn threads_of_the_program_are_at_their_times_and_sums_are_said_to_be_at_none() {
    let document = |profile: &Profile| -> serde_json::Value {
        serde_json::from_slice(&View::Firefox.write(profile, &HEADING)).unwrap()
    };
    let of = |document: &serde_json::Value| document["threads"].as_array().unwrap().clone();
    let all = document(&profile());
    let threads = of(&all);
    let process = |thread: &serde_json::Value| {
        ["tid", "pid", "processName"].map(|name| thread[name].as_str().unwrap().to_string())
    };
    assert_eq!(process(&threads[0]), ["7", "a.out", "a.out"]);
    // (whose process is not known: what was recorded)
    assert_eq!(process(&threads[1]), ["8", "./a.out", "./a.out"]);
    assert!(process(&threads[2])[2].contains("no real times"), "{}", threads[2]);
    assert!(threads.iter().all(|thread| thread["isMainThread"] == false));
    for thread in &threads[..2] {
        let samples = columns(&thread["samples"]);
        let times: Vec<f64> = samples["time"].iter().map(|time| time.as_f64().unwrap()).collect();
        assert!(
            times.is_sorted() && times.last().unwrap() <= &all["meta"]["profilingEndTime"].as_f64().unwrap()
        );
        // nanoseconds of CPU time since the row before
        let delta = |k: usize| samples["threadCPUDelta"][k].as_f64().unwrap();
        assert!((0..times.len()).all(|k| delta(k) == 1e6 * samples["weight"][k].as_f64().unwrap()));
    }
    assert_eq!(all["meta"]["sampleUnits"]["threadCPUDelta"], "ns");
    assert_eq!(all["meta"]["initialVisibleThreads"].as_array().unwrap().len(), threads.len());
    let many = Profile { by_thread: (1..200).map(|tid| thread(tid, "", 1, None)).collect(), ..profile() };
    let many = Profile {
        samples: (1..200).map(|thread| ProfiledSample { thread, ..many.samples[0] }).collect(),
        ..many
    };
    let (shown, many) = (document(&many)["meta"]["initialVisibleThreads"].clone(), of(&document(&many)));
    assert_eq!((shown.as_array().unwrap().len(), many.len()), (50 + 6, 199 + 6));
    assert!(
        shown.as_array().unwrap().contains(&199.into()) && !shown.as_array().unwrap().contains(&60.into())
    );
    // where it is not known when samples were
    let sums = of(&document(&Profile { samples: Vec::new(), ..profile() }));
    assert_eq!((sums.len(), &sums[0]["name"]), (6, &"CPU time".into()));
    // of events no time has passed
    let counts = of(&document(&conditional()));
    assert_eq!(
        (&counts[0]["name"], &counts[0]["samples"]["weightType"]),
        (&"thread 7".into(), &"samples".into())
    );
    assert!(counts.iter().all(|thread| thread["samples"]["threadCPUDelta"].is_null()));
}

#[test]
fn a_function_has_the_source_file_of_most_of_its_time_and_lines_of_that_alone() {
    let mut profile = profile();
    let mut frames = profile.stacks.keys().find(|stack| stack.frames.len() == 1).unwrap().frames.clone();
    frames[0].line = Some(SourceLine { file: "/src/a.h".into(), line: 9 });
    profile.stacks.insert(CallStack { core: 0, frames }, 700_000_000);
    let document: serde_json::Value =
        serde_json::from_slice(&View::Firefox.write(&profile, &HEADING)).unwrap();
    let shared = &document["shared"];
    let [frames, functions, sources] =
        ["frameTable", "funcTable", "sources"].map(|name| columns(&shared[name]));
    let f =
        |name: &serde_json::Value| shared["stringArray"][name.as_u64().unwrap() as usize] == "f(\"x\", int)";
    let function = functions["name"].iter().position(f).unwrap();
    let file = &sources["filename"][functions["source"][function].as_u64().unwrap() as usize];
    assert_eq!(shared["stringArray"][file.as_u64().unwrap() as usize], "/src/a.c");
    let of_function = (0..frames["func"].len()).filter(|frame| frames["func"][*frame] == function);
    let lines: Vec<Option<u64>> = of_function.map(|frame| frames["line"][frame].as_u64()).collect();
    assert!(
        [None, Some(1), Some(2)].iter().all(|line| lines.contains(line)) && lines.len() == 3,
        "{lines:?}"
    );
}

#[test]
fn nothing_has_threads_too() {
    let document: serde_json::Value =
        serde_json::from_slice(&View::Firefox.write(&nothing(), &HEADING)).unwrap();
    let samples = &document["threads"][0]["samples"];
    assert_eq!(
        (&samples["stack"], &samples["time"]),
        (&serde_json::json!([null]), &serde_json::json!([0.0]))
    );
    assert!(document["meta"]["extra"].to_string().contains("Nothing was sampled"));
}
