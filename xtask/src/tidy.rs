//! The house rules that no compiler checks, one a file. Each is a function from text to
//! complaints, and has a test that shows it complaining.
//!
//! They run as tests of this crate, in `cargo xtask verify`, and alone by `cargo xtask tidy`.

mod architecture;
mod behaviours;
mod checks;
mod edges;
mod fences;
mod fields;
mod glossary;
mod imports;
mod leftovers;
mod length;
mod links;
mod names;
mod proto;
mod provenance;
mod raw_ids;
mod roots;
mod runtime;
mod sentences;
mod sides;
mod silence;
mod translators;

use crate::{fuzz, workspace};
use anyhow::bail;

/// Findings of a rule, each with its place.
type Complaints = Vec<String>;

/// Prints what is wrong, and fails if anything is. Looks at the lock file of the fuzz targets, too, which
/// nothing else would do before the longest builds.
pub(crate) fn run() -> anyhow::Result<()> {
    fuzz::check_lock()?;
    let complaints = all()?;
    for complaint in &complaints {
        println!("tidy: {complaint}");
    }
    if !complaints.is_empty() {
        bail!("tidy: {} complaints", complaints.len());
    }
    println!("tidy: nothing to complain of");
    Ok(())
}

fn all() -> anyhow::Result<Complaints> {
    let packages = edges::packages()?;
    let rust = workspace::files(&[".rs"])?;
    let markdown = workspace::files(&[".md"])?;
    let proto = workspace::files(&[".proto"])?;
    let java = workspace::files(&[".java"])?;
    let mut complaints = edges::check(&packages);
    complaints.extend(runtime::check()?);
    complaints.extend(provenance::check()?);
    complaints.extend(roots::check(&packages)?);
    complaints.extend(architecture::check(&packages, &markdown));
    complaints.extend(behaviours::check(&markdown, &rust));
    complaints.extend(checks::check(&rust));
    complaints.extend(glossary::check(&markdown));
    complaints.extend(names::check_packages(&packages));
    for file in &rust {
        complaints.extend(names::check_path(&file.path));
        complaints.extend(length::check(file));
        complaints.extend(imports::check(file));
        complaints.extend(leftovers::check(file));
        complaints.extend(fields::check(file));
        complaints.extend(raw_ids::check(file));
        complaints.extend(sentences::check(file));
        complaints.extend(sides::check(file));
        complaints.extend(silence::check(file));
        complaints.extend(translators::check(file));
    }
    for file in &java {
        complaints.extend(names::check_path(&file.path));
        complaints.extend(length::check(file));
        complaints.extend(leftovers::check(file));
    }
    for file in &markdown {
        complaints.extend(links::check(file, &|path| {
            workspace::root().join(path).exists()
        }));
        complaints.extend(fences::check(file));
    }
    for file in &proto {
        complaints.extend(proto::check(file));
    }
    Ok(complaints)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let complaints = super::all().unwrap();
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
