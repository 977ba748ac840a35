//! What the project's sources amount to: lines, circles of imports, and the size
//! of its central types. The counts are by text, so they need no compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// The crates whose production code is counted.
pub const CRATES: [&str; 7] = [
    "proto", "engine", "daemon", "client", "hook", "witness", "cli",
];

/// A module, by the names of the modules above it and its own.
type Module = Vec<String>;

/// The imports of a crate: of each module, the modules that its `use` items name.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// A source file.
pub struct Source {
    /// The path from the project's root.
    pub path: String,
    /// The lines that are compiled into the product.
    pub production: Vec<String>,
    /// The lines behind `#[cfg(test)]`, or all lines of a file of tests.
    pub test: Vec<String>,
}

/// The counts.
#[derive(Debug)]
pub struct House {
    /// Lines of production code by crate, without comments and blank lines.
    pub production: BTreeMap<String, usize>,
    /// Lines of test code, without comments and blank lines.
    pub tests: usize,
    /// The number of modules in the largest circle of imports of each crate.
    pub circles: BTreeMap<String, usize>,
    /// The fields of the event loop's type.
    pub loop_fields: usize,
    /// The files with an inherent `impl Engine`.
    pub engine_files: usize,
}

impl fmt::Display for House {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.production.values().sum();
        writeln!(out, "production {all} lines {:?}", self.production)?;
        writeln!(out, "tests {} lines", self.tests)?;
        writeln!(out, "largest circle of imports {:?}", self.circles)?;
        writeln!(out, "fields of the loop {}", self.loop_fields)?;
        writeln!(out, "files with impl Engine {}", self.engine_files)
    }
}

/// Returns whether a file has only tests.
fn is_of_tests(path: &str) -> bool {
    let Some((krate, inner)) = path.split_once("/src/") else {
        return true;
    };
    let is_named = |name: &str| {
        matches!(
            name.trim_end_matches(".rs"),
            "test" | "tests" | "property" | "model" | "snapshots" | "documented" | "large"
        )
    };
    matches!(krate, "tests" | "bench") || inner.split('/').any(is_named)
}

/// Splits a text into production lines and test lines: the item after a
/// `#[cfg(test)]` belongs to the tests. As rustfmt writes it, its last line is
/// its first that is indented like the item and ends it.
fn split(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut production, mut test) = (Vec::new(), Vec::new());
    // The indentation of an item of tests.
    let mut item: Option<usize> = None;
    let mut is_armed = false;
    for line in text.lines() {
        let own = line.trim();
        let indent = line.len() - line.trim_start().len();
        let is_mark = own.starts_with("#[cfg(test") || own.starts_with("#[cfg(all(test");
        if let Some(outer) = item {
            let ends = indent == outer && matches!(own, "}" | "};" | ")" | ");" | "]" | "];");
            item = item.filter(|_| !ends);
            test.push(own.to_owned());
        } else if is_mark || is_armed {
            is_armed = is_mark || own.starts_with("#[");
            let is_open = !is_armed && !own.ends_with([';', ',', '}']);
            item = is_open.then_some(indent);
            test.push(own.to_owned());
        } else {
            production.push(own.to_owned());
        }
    }
    (production, test)
}

/// Returns the Rust sources below a directory, in the order of their paths.
pub fn sources(root: &Path, below: &str) -> Vec<Source> {
    fn walk(directory: &Path, root: &Path, found: &mut Vec<Source>) {
        let mut entries: Vec<_> = fs::read_dir(directory).unwrap().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !matches!(&*name, "target" | "node_modules") {
                walk(&path, root, found);
            } else if name.ends_with(".rs") {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root).unwrap();
                let path = path.to_string_lossy().into_owned();
                let (mut production, mut test) = split(&text);
                if is_of_tests(&path) {
                    test.append(&mut production);
                }
                found.push(Source {
                    path,
                    production,
                    test,
                });
            }
        }
    }
    let mut found = Vec::new();
    let directory = root.join(below);
    if directory.is_dir() {
        walk(&directory, root, &mut found);
    }
    found
}

fn is_code(line: &&String) -> bool {
    !line.is_empty() && !line.starts_with("//")
}

/// Returns the names of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn names(tree: &str, above: &[String], found: &mut Vec<Module>) {
    let (mut depth, mut part) = (0, String::new());
    let mut parts = Vec::new();
    for letter in tree.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let steps = |path: &str| -> Vec<String> {
        let steps = path.split("::").map(str::trim);
        let own = steps.filter(|step| !step.is_empty()).map(str::to_owned);
        above.iter().cloned().chain(own).collect()
    };
    for part in parts.iter().filter(|part| !part.trim().is_empty()) {
        match part.split_once('{') {
            Some((path, rest)) => {
                let rest = rest.trim_end().trim_end_matches('}');
                names(rest, &steps(path), found);
            }
            None => found.push(steps(part.split(" as ").next().unwrap_or(part))),
        }
    }
}

/// Returns the imports between the modules of a crate.
pub fn imports(root: &Path, krate: &str) -> Imports {
    let below = format!("{krate}/src");
    let files = sources(root, &below);
    let module = |path: &str| -> Module {
        let inner = path[below.len() + 1..].trim_end_matches(".rs");
        let mut steps: Module = inner.split('/').map(str::to_owned).collect();
        if matches!(&**steps.last().unwrap(), "mod" | "lib" | "main") {
            steps.pop();
        }
        steps
    };
    let production = || files.iter().filter(|file| !is_of_tests(&file.path));
    let modules: BTreeSet<Module> = production().map(|file| module(&file.path)).collect();
    let resolve = |path: &[String]| {
        let mut lengths = (1..=path.len()).rev();
        lengths.find_map(|length| modules.get(&path[..length]).cloned())
    };
    let mut found = Imports::new();
    for file in production() {
        let own = module(&file.path);
        let text = file.production.join("\n");
        let mut trees = Vec::new();
        for item in text.split(";\n").chain(text.strip_suffix(';')) {
            let Some(at) = item.rfind("use ").filter(|at| {
                let before = item[..*at].rsplit('\n').next().unwrap_or_default();
                before.is_empty() || before.starts_with("pub")
            }) else {
                continue;
            };
            names(&item[at + 4..].replace('\n', " "), &[], &mut trees);
        }
        for mut path in trees {
            let first = path.first().cloned().unwrap_or_default();
            let mut base = own.clone();
            match &*first {
                "crate" => path = path.split_off(1),
                "super" => {
                    while path.first().is_some_and(|step| step == "super") {
                        base.pop();
                        path.remove(0);
                    }
                    path = base.into_iter().chain(path).collect();
                }
                _ => {
                    let own_name = usize::from(first == "self");
                    base.extend(path.into_iter().skip(own_name));
                    path = base;
                    if own_name == 0
                        && !modules.contains(path.get(..=own.len()).unwrap_or_default())
                    {
                        continue;
                    }
                }
            }
            if let Some(target) = resolve(&path).filter(|target| *target != own) {
                found.entry(own.clone()).or_default().insert(target);
            }
        }
    }
    found
}

/// Returns the largest set of modules that import each other in a circle.
pub fn largest_circle(imports: &Imports) -> BTreeSet<Module> {
    let none = BTreeSet::new();
    let reached = |from: &Module| -> BTreeSet<Module> {
        let mut found = BTreeSet::new();
        let mut next = vec![from.clone()];
        while let Some(module) = next.pop() {
            for target in imports.get(&module).unwrap_or(&none) {
                if found.insert(target.clone()) {
                    next.push(target.clone());
                }
            }
        }
        found
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> = imports
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let own = &reach[module];
        let comes_back = |other: &&Module| reach.get(other).is_some_and(|all| all.contains(module));
        own.iter().filter(comes_back).cloned().collect()
    };
    let circles = imports.keys().map(circle);
    circles.max_by_key(BTreeSet::len).unwrap_or_default()
}

/// Returns the number of fields of a struct.
fn fields(text: &str, name: &str) -> usize {
    let start = text.find(&format!("\nstruct {name} {{")).unwrap();
    let body = text[start..].split("\n}").next().unwrap();
    let is_field = |line: &&str| line.starts_with("    ") && line.ends_with(',');
    body.lines().filter(is_field).count()
}

/// Counts the sources of the project.
pub fn count(root: &Path) -> House {
    let mut production = BTreeMap::new();
    let mut tests = 0;
    for krate in CRATES {
        for file in sources(root, krate) {
            let code = file.production.iter().filter(is_code).count();
            *production.entry(krate.to_owned()).or_default() += code;
            tests += file.test.iter().filter(is_code).count();
        }
    }
    for file in sources(root, "tests") {
        tests += file.test.iter().filter(is_code).count();
    }
    let circle = |krate: &str| largest_circle(&imports(root, krate)).len();
    let engine = sources(root, "engine/src");
    let has_engine = |file: &&Source| file.production.iter().any(|line| line == "impl Engine {");
    House {
        production,
        tests,
        circles: CRATES.map(|krate| (krate.to_owned(), circle(krate))).into(),
        loop_fields: fields(
            &fs::read_to_string(root.join("daemon/src/run.rs")).unwrap(),
            "Daemon",
        ),
        engine_files: engine.iter().filter(has_engine).count(),
    }
}
