//! The node's own limiter, set through its environment.

use super::case::Place;
use airmail_flow::GateSettings;

/// Environment of a node: where the limiter is its own, this one, or else none.
pub(super) fn environment(place: Place, gate: &GateSettings) -> Vec<(&'static str, String)> {
    let limiter = &gate.limiter;
    match place {
        Place::Publisher => vec![("AIRMAIL_FLOW_PUBLISH_LIMITER", "off".to_owned())],
        Place::Pilot => vec![
            ("AIRMAIL_FLOW_PUBLISH_LIMITER", limiter.kind.to_string()),
            (
                "AIRMAIL_FLOW_PUBLISH_IN_FLIGHT",
                limiter.bound_initial.to_string(),
            ),
            (
                "AIRMAIL_FLOW_PUBLISH_WINDOW",
                gate.window_messages.to_string(),
            ),
            ("AIRMAIL_FLOW_PUBLISH_DELTA", limiter.delta.to_string()),
            (
                "AIRMAIL_FLOW_PUBLISH_FLOOR",
                format!("{}ms", limiter.gradient.latency_floor_ms),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_limiter_only_where_it_is_the_pilots() {
        let gate = GateSettings::DEFAULT;
        let off = environment(Place::Publisher, &gate);
        assert_eq!(off, [("AIRMAIL_FLOW_PUBLISH_LIMITER", "off".to_owned())]);
        let of = |(name, value)| format!("{name}={value}");
        let pilot: Vec<String> = environment(Place::Pilot, &gate)
            .into_iter()
            .map(of)
            .collect();
        let expected = [
            "AIRMAIL_FLOW_PUBLISH_LIMITER=gradient",
            "AIRMAIL_FLOW_PUBLISH_IN_FLIGHT=200",
            "AIRMAIL_FLOW_PUBLISH_WINDOW=25000",
            "AIRMAIL_FLOW_PUBLISH_DELTA=20",
            "AIRMAIL_FLOW_PUBLISH_FLOOR=0ms",
        ];
        assert_eq!(pilot, expected);
    }
}
