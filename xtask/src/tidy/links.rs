//! Links in Markdown to files of the repository lead somewhere.

use super::Complaints;
use crate::workspace::File;

/// Complains of each link to a file that `exists` does not know.
pub(crate) fn check(file: &File, exists: &dyn Fn(&str) -> bool) -> Complaints {
    let directory = file
        .path
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory);
    targets(&file.text)
        .filter(|target| {
            !target.contains("://")
                && !target.starts_with(['#', '<'])
                && !target.starts_with("mailto:")
        })
        .filter_map(|target| {
            let path = resolve(directory, target.split('#').next().unwrap_or(target));
            (!exists(&path)).then(|| format!("{}: the link to {target} leads nowhere", file.path))
        })
        .collect()
}

/// Texts inside `](…)`.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        (!target.is_empty() && !target.contains(char::is_whitespace)).then_some(target)
    })
}

fn resolve(directory: &str, target: &str) -> String {
    let mut parts: Vec<&str> = directory
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Complaints {
        let file = File {
            path: "docs/guide.md".to_owned(),
            text: text.to_owned(),
        };
        check(&file, &|path| {
            path == "docs/errors.md" || path == "README.md"
        })
    }

    #[test]
    fn a_link_that_leads_nowhere_is_told() {
        assert_eq!(complaints("see [errors](eros.md)").len(), 1);
        assert_eq!(complaints("see [readme](README.md#top)").len(), 1);
    }

    #[test]
    fn links_that_lead_somewhere_are_allowed() {
        assert!(
            complaints("[a](errors.md#x), [b](../README.md), [c](https://x.y/z), [d](#here)")
                .is_empty()
        );
    }
}
