//! The node's own limiter, set through its environment. What is not asked for stays as the node has it:
//! what is measured is what runs.

use super::case::Place;
use super::plan::Asked;
use airmail_experiments::flow::Throttling;
use airmail_flow::LimiterKind;

/// Environment of a node: where the limiter is its own, this one with the settings that were asked for, or
/// else none.
pub(super) fn environment(
    place: Place,
    gate: &Throttling,
    asked: &Asked,
) -> Vec<(&'static str, String)> {
    let limiter = "AIRMAIL_FLOW_PUBLISH_LIMITER";
    if place == Place::Publisher {
        return vec![(limiter, "off".to_owned())];
    }
    let fixed = gate.limiter == LimiterKind::Fixed;
    let initial = fixed.then_some(gate.bound_initial).or(asked.initial);
    let window = fixed.then_some(gate.window_messages).or(asked.window);
    let number = |value: u64| value.to_string();
    let settings = [
        (limiter, Some(gate.limiter.to_string())),
        ("AIRMAIL_FLOW_PUBLISH_IN_FLIGHT", initial.map(number)),
        ("AIRMAIL_FLOW_PUBLISH_WINDOW", window.map(number)),
        ("AIRMAIL_FLOW_PUBLISH_DELTA", asked.delta.map(number)),
        (
            "AIRMAIL_FLOW_PUBLISH_FLOOR",
            asked.floor_ms.map(|floor_ms| format!("{floor_ms}ms")),
        ),
    ];
    let settings = settings.into_iter();
    settings
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    fn of(place: Place, gate: &Throttling, asked: &Asked) -> Vec<String> {
        let environment = environment(place, gate, asked).into_iter();
        let line = |(name, value): (&str, String)| {
            format!(
                "{}={value}",
                name.trim_start_matches("AIRMAIL_FLOW_PUBLISH_")
            )
        };
        environment.map(line).collect()
    }

    #[test]
    fn a_node_has_a_limiter_only_where_it_is_the_pilots_and_else_its_own_settings() {
        let plan = plan("");
        let gate = plan.throttling(LimiterKind::Gradient);
        assert_eq!(of(Place::Publisher, &gate, &plan.gates), ["LIMITER=off"]);
        assert_eq!(of(Place::Pilot, &gate, &plan.gates), ["LIMITER=gradient"]);
        let fixed = plan.fixed(545, 1e6);
        let expected = ["LIMITER=fixed", "IN_FLIGHT=545", "WINDOW=30000"];
        assert_eq!(of(Place::Pilot, &fixed, &plan.gates), expected);
    }

    #[test]
    fn what_is_asked_for_is_set() {
        let plan = plan("--initial 7 --window 70 --delta 3 --floor 2ms");
        let gate = plan.throttling(LimiterKind::Adaptive);
        let expected = [
            "LIMITER=adaptive",
            "IN_FLIGHT=7",
            "WINDOW=70",
            "DELTA=3",
            "FLOOR=2ms",
        ];
        assert_eq!(of(Place::Pilot, &gate, &plan.gates), expected);
    }
}
