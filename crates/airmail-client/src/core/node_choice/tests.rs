use super::*;

fn node(number: usize, connections: u32) -> ServingNode {
    ServingNode {
        name: format!("g{number}"),
        address: format!("10.0.0.{number}:7400"),
        zone: format!("zone-{}", number % 2),
        host: format!("host-{number}"),
        connections,
        pilot: true,
        copilot: true,
    }
}

fn told(nodes: impl IntoIterator<Item = ServingNode>) -> Nodes {
    Nodes {
        nodes: nodes.into_iter().collect(),
        leave: false,
    }
}

fn choice(seeds: &[&str], place: (&str, &str), seed: u64) -> NodeChoice {
    let seeds = seeds.iter().map(|seed| (*seed).to_owned()).collect();
    let place = Place {
        host: place.0.to_owned(),
        zone: place.1.to_owned(),
    };
    NodeChoice::new(seeds, Purpose::Subscribe, place, seed)
}

fn at(seconds: u64) -> Mono {
    Mono(seconds * 1_000_000_000)
}

#[test]
fn a_client_of_one_address_is_always_given_that_address() {
    let mut choice = choice(&["a:7400"], ("", ""), 1);
    for second in 0..30 {
        assert_eq!(choice.choose(at(second)), "a:7400");
        choice.failed(at(second), "a:7400");
    }
}

#[test]
fn addresses_are_tried_one_after_the_other_until_one_is_good_again() {
    let mut choice = choice(&["a:1", "b:2", "c:3"], ("", ""), 7);
    let mut tried: Vec<String> = (0..3)
        .map(|second| {
            let chosen = choice.choose(at(second));
            choice.failed(at(second), &chosen);
            chosen
        })
        .collect();
    // All have failed: again the one that failed first.
    assert_eq!(choice.choose(at(4)), tried[0]);
    tried.sort();
    assert_eq!(tried, ["a:1", "b:2", "c:3"]);
}

#[test]
fn seeds_are_drawn_evenly_and_one_of_the_own_machine_is_preferred() {
    let mut counts = BTreeMap::<String, u32>::new();
    for seed in 0..1_000 {
        let mut choice = choice(&["a:1", "b:2"], ("", ""), seed);
        *counts.entry(choice.choose(at(0))).or_default() += 1;
    }
    assert!(
        counts.values().all(|count| (400..600).contains(count)),
        "{counts:?}"
    );
    for local in ["127.0.0.1:1", "localhost:1", "[::1]:1", "here:1"] {
        let mut choice = choice(&["a:1", local, "b:2"], ("here", ""), 3);
        assert_eq!(choice.choose(at(0)), local);
    }
}

#[test]
fn the_own_host_is_preferred_to_the_own_zone_and_that_to_any_other_node() {
    for (place, expected) in [
        (("host-3", "zone-0"), Some("10.0.0.3:7400")),
        (("elsewhere", "zone-1"), Some("10.0.0.3:7400")),
        (("elsewhere", "zone-0"), None),
        (("elsewhere", "nowhere"), None),
    ] {
        let mut choice = choice(&["10.0.0.2:7400"], place, 5);
        assert_eq!(choice.choose(at(0)), "10.0.0.2:7400");
        choice.met("10.0.0.2:7400", "g2");
        choice.told(at(0), "10.0.0.2:7400", &told([node(2, 1), node(3, 1)]));
        assert_eq!(choice.target("10.0.0.2:7400"), expected, "{place:?}");
    }
}

#[test]
fn a_node_met_under_another_address_is_the_same_node() {
    let mut choice = choice(&["proxy:1"], ("host-1", ""), 5);
    choice.met("proxy:1", "g1");
    choice.told(at(0), "proxy:1", &told([node(1, 90), node(2, 10)]));
    assert_eq!(
        choice.target("proxy:1"),
        None,
        "it is at its own host already"
    );
    choice.failed(at(0), "proxy:1");
    assert_eq!(choice.choose(at(0)), "10.0.0.2:7400");
}

#[test]
fn what_nodes_tell_goes_before_the_url_and_the_url_is_there_when_all_of_it_fails() {
    let mut choice = choice(&["seed:1"], ("", ""), 5);
    choice.told(at(0), "seed:1", &told([node(1, 1), node(2, 1)]));
    let first = choice.choose(at(0));
    choice.failed(at(0), &first);
    let second = choice.choose(at(0));
    choice.failed(at(0), &second);
    let mut both = [first.as_str(), second.as_str()];
    both.sort_unstable();
    assert_eq!(both, ["10.0.0.1:7400", "10.0.0.2:7400"]);
    assert_eq!(choice.choose(at(0)), "seed:1");
    // What has failed long ago is as good as any.
    assert_ne!(choice.choose(at(11)), "seed:1");
}

#[test]
fn whoever_was_told_last_by_a_node_that_was_cut_off_finds_the_others_again() {
    for seeds in [&["10.0.0.1:7400"][..], &["10.0.0.1:7400", "10.0.0.2:7400"]] {
        let mut choice = choice(seeds, ("", ""), 5);
        let first = "10.0.0.1:7400";
        choice.told(at(0), first, &told([node(1, 3), node(2, 3)]));
        // It is cut off, sees nobody else, and still reaches its clients.
        choice.told(at(1), first, &told([node(1, 3)]));
        choice.failed(at(2), first);
        assert_eq!(choice.choose(at(2)), "10.0.0.2:7400", "{seeds:?}");
    }
}

#[test]
fn whoever_is_asked_to_leave_goes_elsewhere_and_does_not_come_back_at_once() {
    let mut choice = choice(&["10.0.0.1:7400"], ("host-1", "zone-1"), 5);
    choice.met("10.0.0.1:7400", "g1");
    choice.told(at(0), "10.0.0.1:7400", &told([node(1, 1), node(2, 1)]));
    let leave = Nodes {
        leave: true,
        ..told([node(1, 1), node(2, 1)])
    };
    choice.told(at(1), "10.0.0.1:7400", &leave);
    assert_eq!(choice.target("10.0.0.1:7400"), Some("10.0.0.2:7400"));
    choice.moved(at(1), "10.0.0.1:7400");
    choice.met("10.0.0.2:7400", "g2");
    for second in 2..11 {
        choice.told(at(second), "10.0.0.2:7400", &told([node(1, 1), node(2, 1)]));
        assert_eq!(choice.target("10.0.0.2:7400"), None, "after {second} s");
    }
    // Its own host is nearer.
    choice.told(at(12), "10.0.0.2:7400", &told([node(1, 1), node(2, 1)]));
    assert_eq!(choice.target("10.0.0.2:7400"), Some("10.0.0.1:7400"));
    // The only other one was left a moment ago, and lives.
    choice.moved(at(12), "10.0.0.2:7400");
    choice.met("10.0.0.1:7400", "g1");
    choice.told(at(13), "10.0.0.1:7400", &leave);
    assert_eq!(choice.target("10.0.0.1:7400"), Some("10.0.0.2:7400"));
    choice.moved(at(13), "10.0.0.1:7400");
    // Where there is no other, it stays.
    let alone = Nodes {
        leave: true,
        ..told([node(2, 1)])
    };
    choice.told(at(13), "10.0.0.2:7400", &alone);
    assert_eq!(choice.target("10.0.0.2:7400"), None);
}

#[test]
fn a_node_that_could_not_be_reached_is_no_target_for_a_while() {
    let mut choice = choice(&["10.0.0.1:7400"], ("host-2", ""), 5);
    choice.met("10.0.0.1:7400", "g1");
    for second in 0..25 {
        choice.told(at(second), "10.0.0.1:7400", &told([node(1, 1), node(2, 1)]));
        let target = choice.target("10.0.0.1:7400").map(str::to_owned);
        assert_eq!(target.is_some(), second % 10 == 0, "after {second} s");
        if let Some(target) = target {
            choice.failed(at(second), &target);
        }
    }
}

#[test]
fn whoever_is_at_a_node_of_another_role_goes_to_one_that_serves() {
    for (purpose, expected) in [
        (Purpose::Publish, "10.0.0.2:7400"),
        (Purpose::Subscribe, "10.0.0.3:7400"),
    ] {
        let seeds = vec!["10.0.0.1:7400".to_owned()];
        let mut choice = NodeChoice::new(seeds, purpose, Place::default(), 1);
        let with = |number, pilot, copilot| ServingNode {
            pilot,
            copilot,
            ..node(number, 0)
        };
        let roles = told([
            with(1, false, false),
            with(2, true, false),
            with(3, false, true),
        ]);
        choice.met("10.0.0.1:7400", "g1");
        assert_eq!(choice.serves("10.0.0.1:7400"), None);
        choice.told(at(0), "10.0.0.1:7400", &roles);
        assert_eq!(choice.serves("10.0.0.1:7400"), Some(false));
        assert_eq!(choice.target("10.0.0.1:7400"), Some(expected));
        // One that is not told of serves nothing either.
        let unseen = told([with(2, true, false), with(3, false, true)]);
        choice.told(at(0), "10.0.0.1:7400", &unseen);
        assert_eq!(choice.target("10.0.0.1:7400"), Some(expected));
        choice.moved(at(0), "10.0.0.1:7400");
        assert_eq!(choice.serves(expected), Some(true));
        assert_eq!(choice.choose(at(0)), expected);
    }
}

#[test]
fn whoever_has_no_way_to_a_node_that_serves_goes_there_as_soon_as_there_is_one() {
    let seeds = ["10.0.0.1:7400", "10.0.0.2:7400"]
        .map(str::to_owned)
        .to_vec();
    let mut choice = NodeChoice::new(seeds, Purpose::Publish, Place::default(), 1);
    let roles = |number, pilot| ServingNode {
        pilot,
        ..node(number, 0)
    };
    choice.met("10.0.0.1:7400", "g1");
    choice.met("10.0.0.2:7400", "g2");
    // The only pilot has failed, and is the best that there is.
    choice.learn(&told([roles(1, false), roles(2, true)]));
    choice.failed(at(0), "10.0.0.2:7400");
    assert_eq!(choice.choose(at(1)), "10.0.0.2:7400");
    // It is not told of at first; then it is, and though it has failed lately it is the only one.
    choice.told(at(2), "10.0.0.1:7400", &told([roles(1, false)]));
    assert_eq!(choice.target("10.0.0.1:7400"), None);
    choice.failed(at(3), "10.0.0.2:7400");
    choice.told(
        at(3),
        "10.0.0.1:7400",
        &told([roles(1, false), roles(2, true)]),
    );
    assert_eq!(choice.target("10.0.0.1:7400"), Some("10.0.0.2:7400"));
    // It could not be reached again: nobody tells anything, and time passes.
    choice.failed(at(4), "10.0.0.2:7400");
    assert_eq!(choice.target("10.0.0.1:7400"), None);
    choice.look(at(5), "10.0.0.1:7400");
    assert_eq!(choice.target("10.0.0.1:7400"), Some("10.0.0.2:7400"));
}

/// Clients that all began at one node, and are told once a second how many there are at each.
#[test]
fn clients_spread_evenly_over_nodes_by_themselves_and_then_stay() {
    for (nodes, clients, seed) in [(2, 200, 1), (2, 200, 2), (3, 300, 3), (4, 2_000, 4)] {
        let mut choices: Vec<(NodeChoice, usize)> = (0..clients)
            .map(|client| {
                let mut choice = choice(&["10.0.0.0:7400"], ("", ""), seed * 10_000 + client);
                choice.met("10.0.0.0:7400", "g0");
                (choice, 0)
            })
            .collect();
        let mut last_moves = 0;
        for second in 0..60 {
            let count = |node| choices.iter().filter(|(_, at)| *at == node).count() as u32;
            let now = told((0..nodes).map(|number| node(number, count(number))));
            last_moves = 0;
            for (choice, node) in &mut choices {
                let from = format!("10.0.0.{node}:7400");
                choice.told(at(second), &from, &now);
                let Some(target) = choice.target(&from).map(str::to_owned) else {
                    continue;
                };
                choice.moved(at(second), &from);
                *node = (0..nodes)
                    .find(|number| target == format!("10.0.0.{number}:7400"))
                    .unwrap();
                choice.met(&target, &format!("g{node}"));
                last_moves += 1;
            }
        }
        let counts: Vec<usize> = (0..nodes)
            .map(|node| choices.iter().filter(|(_, at)| *at == node).count())
            .collect();
        let mean = clients as usize / nodes;
        let even = counts.iter().all(|count| count.abs_diff(mean) * 10 <= mean);
        assert!(
            even && last_moves == 0,
            "{counts:?}, {last_moves} moves at last"
        );
    }
}
