//! Nodes on logs that are opened only with what was made for them before: every node opens them with the same.

use crate::many_writers::{Nodes, slow};
use airmail_broker::{Command, Outcome};
use airmail_log::many_writers::SharedSettings;
use airmail_model::{ErrorCode, NamespaceId};

fn nodes(count: usize) -> Nodes {
    Nodes::new(
        count,
        SharedSettings {
            provisions: true,
            ..slow(3)
        },
    )
}

#[test]
fn nodes_that_start_together_have_one_first_namespace_and_withdraw_what_was_made_for_others() {
    let mut nodes = nodes(3);
    for node in &nodes.nodes {
        assert!(node.engine.shard().ready());
        assert_eq!(node.engine.shard().catalog().len(), 1);
    }
    assert_eq!(nodes.logs.provisioned(), [NamespaceId(1)]);
    assert_eq!(nodes.logs.withdrawn(), 2);
    nodes.tell(2, "x");
}

#[test]
fn two_creates_at_once_make_both_namespaces_each_with_its_own() {
    let mut nodes = nodes(2);
    let before = nodes.logs.withdrawn();
    nodes.create(0, "orders");
    nodes.create(1, "bills");
    nodes.run();
    for node in &nodes.nodes {
        assert!(matches!(node.outcomes[..], [Ok(Outcome::Namespace(_))]));
        assert!(node.engine.shard().ready());
        assert_eq!(node.engine.shard().catalog().len(), 3);
    }
    assert_eq!(nodes.logs.provisioned(), [1, 2, 3].map(NamespaceId));
    assert_eq!(nodes.logs.withdrawn(), before + 1);
}

#[test]
fn a_node_that_has_just_begun_deletes_what_another_has_made() {
    let mut nodes = nodes(1);
    nodes.create(0, "orders");
    nodes.run();
    nodes.nodes.clear();
    nodes.join(9);
    nodes.run();
    let (name, based_on) = ("orders".to_owned(), None);
    nodes.command(0, Command::DeleteNamespace { name, based_on });
    nodes.run();
    let outcomes = &nodes.nodes[0].outcomes;
    assert!(matches!(outcomes[..], [Ok(Outcome::Deleted)]));
    assert_eq!(nodes.logs.provisioned(), [NamespaceId(1)]);
}

#[test]
fn a_client_is_told_that_the_storage_could_not_provision() {
    let mut nodes = nodes(1);
    nodes.logs.set(SharedSettings {
        busy: 1_000_000,
        ..slow(3)
    });
    nodes.create(0, "orders");
    nodes.run();
    let outcome = nodes.nodes[0].outcomes.pop().expect("answered");
    assert_eq!(outcome.expect_err("busy").code(), ErrorCode::Overloaded);
    nodes.logs.calm();
    nodes.create(0, "orders");
    nodes.run();
    assert!(matches!(nodes.nodes[0].outcomes[..], [Ok(_)]));
}
