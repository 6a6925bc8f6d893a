//! The lines of a file of machines: `ROLE TARGET [ADDRESS]`; a `#` begins a comment.

use airmail_bench::family::place::Place;

/// A line of the file that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {field}: {wrong}")]
pub(super) struct WrongLine {
    line: usize,
    field: &'static str,
    wrong: String,
}

/// The machines of a file, by role.
#[derive(Clone, Debug, Default)]
pub(super) struct Machines {
    /// Where the node is, if there is one.
    pub(super) node: Option<Place>,
    /// Where copilots are, in turn.
    pub(super) copilots: Vec<Place>,
    /// Where the load comes from.
    pub(super) loads: Vec<Place>,
}

/// The machines that the lines name.
pub(super) fn parse(
    text: &str,
    remote: impl Fn(&str, &str) -> Place,
) -> Result<Machines, WrongLine> {
    let mut machines = Machines::default();
    for (content, line) in text.lines().zip(1..) {
        let wrong = |field, wrong: String| WrongLine { line, field, wrong };
        let content = content.split('#').next().unwrap_or_default();
        let mut fields = content.split_whitespace();
        let Some(role) = fields.next() else {
            continue;
        };
        let target = fields.next();
        let target = target.ok_or_else(|| wrong("TARGET", "is missing".to_owned()))?;
        if target.starts_with('-') {
            return Err(wrong("TARGET", format!("{target} looks like an option")));
        }
        let host = target.rsplit_once('@').map_or(target, |(_, host)| host);
        let place = remote(target, fields.next().unwrap_or(host));
        if let Some(field) = fields.next() {
            return Err(wrong("ADDRESS", format!("{field} stands behind it")));
        }
        match role {
            "node" if machines.node.is_some() => {
                return Err(wrong("ROLE", "there is a node already".to_owned()));
            }
            "node" => machines.node = Some(place),
            "copilot" => machines.copilots.push(place),
            "load" => machines.loads.push(place),
            _ => {
                let wrong_role = format!("{role} is none of node, load, copilot");
                return Err(wrong("ROLE", wrong_role));
            }
        }
    }
    Ok(machines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmail_bench::family::place::Remote;

    fn read(text: &str) -> Result<Machines, String> {
        let remote = |target: &str, address: &str| {
            Place::There(Remote {
                target: target.into(),
                address: address.into(),
                ssh: vec!["ssh".into()],
                program: "airmail".into(),
            })
        };
        parse(text, remote).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_names_the_node_and_who_loads_it() {
        let text = "# ours\n\nnode me@one 10.0.0.1\nload two # the large one\ncopilot me@one 10.0.0.2\n\
                    load you@three\n";
        let machines = read(text).unwrap();
        let node = machines.node.unwrap();
        assert_eq!(
            (node.to_string().as_str(), node.address()),
            ("me@one", "10.0.0.1")
        );
        let addresses = |places: &[Place]| -> Vec<String> {
            let addresses = places.iter().map(Place::address);
            addresses.map(str::to_owned).collect()
        };
        assert_eq!(addresses(&machines.loads), ["two", "three"]);
        assert_eq!(addresses(&machines.copilots), ["10.0.0.2"]);
    }

    #[test]
    fn errors_name_line_and_field() {
        for (text, words) in [
            ("node one\nserver two", "line 2: ROLE: server"),
            ("load", "line 1: TARGET: is missing"),
            ("load -oProxyCommand=x", "line 1: TARGET: -oProxyCommand=x"),
            ("node a b c", "line 1: ADDRESS: c"),
            ("node a\nnode b", "line 2: ROLE: there is a node already"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(words), "{text:?}: {said}");
        }
    }
}
