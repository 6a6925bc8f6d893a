//! Dependencies that `deny.toml` lets into the tree: their sources, their licences, and that each
//! names its versions.
//!
//! `cargo deny` looks at the same lists, and at advisories too; but building it takes longer than
//! continuous integration as a whole may take, so it is for releases, and this is for every commit.

use super::Complaints;
use crate::process::{cargo, output};
use crate::workspace;
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::fs;

/// Licences and registries that `deny.toml` allows.
#[derive(Debug)]
struct Allowed {
    licences: Vec<String>,
    /// Further licences of packages, by name.
    exceptions: Vec<(String, Vec<String>)>,
    registries: Vec<String>,
}

/// Complains of packages, of all features, that `deny.toml` does not allow.
pub(crate) fn check() -> anyhow::Result<Complaints> {
    let text = fs::read_to_string(workspace::root().join("deny.toml")).context("deny.toml")?;
    let allowed = read(&text)?;
    let ask = [
        "metadata",
        "--locked",
        "--all-features",
        "--format-version",
        "1",
    ];
    let metadata: Value = serde_json::from_str(&output(&mut cargo(&ask))?)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let each = packages.iter();
    Ok(each
        .flat_map(|package| of_package(package, &allowed))
        .collect())
}

fn read(text: &str) -> anyhow::Result<Allowed> {
    let settings: toml::Table = text.parse()?;
    let list = |part: &str, name: &str| -> anyhow::Result<Vec<String>> {
        let found = settings.get(part).and_then(|part| part.get(name));
        let found = found.and_then(toml::Value::as_array);
        let found = found.with_context(|| format!("deny.toml has no list {part}.{name}"))?;
        let words = found.iter().filter_map(toml::Value::as_str);
        Ok(words.map(str::to_owned).collect())
    };
    let exceptions = settings
        .get("licenses")
        .and_then(|part| part.get("exceptions"));
    let exceptions = exceptions
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten();
    let exception = |entry: &toml::Value| -> anyhow::Result<(String, Vec<String>)> {
        let package = entry.get("crate").and_then(toml::Value::as_str);
        let licences = entry.get("allow").and_then(toml::Value::as_array);
        let (Some(package), Some(licences)) = (package, licences) else {
            bail!("deny.toml: an exception names a `crate` and what to `allow`");
        };
        let licences = licences.iter().filter_map(toml::Value::as_str);
        Ok((package.to_owned(), licences.map(str::to_owned).collect()))
    };
    Ok(Allowed {
        licences: list("licenses", "allow")?,
        exceptions: exceptions.map(exception).collect::<anyhow::Result<_>>()?,
        registries: list("sources", "allow-registry")?,
    })
}

fn of_package(package: &Value, allowed: &Allowed) -> Complaints {
    let name = package["name"].as_str().unwrap_or("?");
    let version = package["version"].as_str().unwrap_or("?");
    let mut complaints = Vec::new();
    let registry = |source: &str| {
        let url = source.strip_prefix("registry+").unwrap_or_default();
        allowed.registries.iter().any(|registry| registry == url)
    };
    match package["source"].as_str() {
        // Ours.
        None => complaints.extend(wildcards(name, package)),
        Some(source) if registry(source) => {}
        Some(source) => complaints.push(format!(
            "{name} {version}: from {source}, which deny.toml does not allow"
        )),
    }
    let excepted = allowed
        .exceptions
        .iter()
        .filter(|(package, _)| package == name);
    let excepted = excepted.flat_map(|(_, licences)| licences);
    let licences: Vec<String> = allowed.licences.iter().chain(excepted).cloned().collect();
    match package["license"].as_str() {
        Some(licence) if is_allowed(licence, &licences) => {}
        Some(licence) => complaints.push(format!(
            "{name} {version}: licensed under {licence}, which deny.toml does not allow"
        )),
        None => complaints.push(format!("{name} {version}: does not name its licence")),
    }
    complaints
}

/// Dependencies of one of our packages on any version of another; one in this tree has no version to say.
fn wildcards(name: &str, package: &Value) -> Complaints {
    let dependencies = package["dependencies"].as_array();
    let open = dependencies.into_iter().flatten().filter(|dependency| {
        dependency["req"].as_str() == Some("*") && dependency["path"].is_null()
    });
    open.map(|dependency| {
        let other = dependency["name"].as_str().unwrap_or("?");
        format!("{name}: takes any version of {other}; say which")
    })
    .collect()
}

/// Whether an SPDX expression (or one of before these, with `/` for OR) can be met by the allowed licences.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words, allowed) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut met = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        // Both sides are read in any case.
        met |= all(words, allowed);
    }
    met
}

fn all(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut met = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let met = any(words, allowed);
        return words.next_if_eq(&")").is_some() && met;
    }
    let mut licence = word.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        licence = format!("{licence} WITH {exception}");
    }
    allowed.contains(&licence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const REGISTRY: &str = "https://github.com/rust-lang/crates.io-index";

    fn complaints(package: &Value) -> Complaints {
        let text = format!(
            "[licenses]\nallow = [\"MIT\", \"ISC\"]\nexceptions = [{{ allow = [\"MPL-2.0\"], crate = \"m\" }}]\n\
             [sources]\nallow-registry = [\"{REGISTRY}\"]"
        );
        of_package(package, &read(&text).unwrap())
    }

    fn package(source: &Value, licence: &Value) -> Value {
        json!({"name": "a", "version": "1.0.0", "source": source, "license": licence,
            "dependencies": [{"name": "b", "req": "*", "path": null}]})
    }

    #[test]
    fn a_licence_that_is_not_on_the_list_is_told() {
        let allowed = ["MIT".to_owned(), "ISC".to_owned()];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "GPL-3.0/MIT",
            "(GPL-3.0 OR MIT) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(is_allowed(good, &allowed), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT WITH Some-exception",
            "(MIT OR ISC",
            "MIT ISC",
        ] {
            assert!(!is_allowed(bad, &allowed), "{bad}");
        }
        let of_registry = json!(format!("registry+{REGISTRY}"));
        assert_eq!(
            complaints(&package(&of_registry, &json!("GPL-3.0"))).len(),
            1
        );
        assert_eq!(complaints(&package(&of_registry, &Value::Null)).len(), 1);
        assert!(complaints(&package(&of_registry, &json!("MIT"))).is_empty());
    }

    #[test]
    fn an_exception_holds_for_the_package_that_it_names() {
        let package = |name: &str| {
            let source = json!(format!("registry+{REGISTRY}"));
            let mut package = package(&source, &json!("MPL-2.0"));
            package["name"] = json!(name);
            complaints(&package)
        };
        assert!(package("m").is_empty());
        assert_eq!(package("n").len(), 1);
        let nameless =
            "[licenses]\nallow = []\nexceptions = [{ allow = [] }]\n[sources]\nallow-registry = []";
        assert!(read(nameless).is_err());
    }

    #[test]
    fn a_package_from_elsewhere_is_told() {
        for elsewhere in ["git+https://example.com/a", "registry+https://example.com"] {
            let told = complaints(&package(&json!(elsewhere), &json!("MIT")));
            assert!(told[0].contains(elsewhere), "{told:?}");
        }
    }

    #[test]
    fn a_dependency_of_ours_on_any_version_is_told() {
        let told = complaints(&package(&Value::Null, &json!("MIT")));
        assert_eq!(told, ["a: takes any version of b; say which"]);
    }

    #[test]
    fn lists_that_are_not_there_are_an_error() {
        assert!(read("[licenses]\nallow = []").is_err());
    }
}
