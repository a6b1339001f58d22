//! Older answers of the node.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// Answers kept for one question.
const ANSWERS: usize = 64;
/// Questions that answers are kept for. Beyond, none is.
const QUESTIONS: usize = 4_096;

/// Older answers of the node, by the slot that each was of.
#[derive(Debug, Default)]
pub(crate) struct Recorded(HashMap<String, VecDeque<(u64, Value)>>);

impl Recorded {
    /// Keeps the answer to a question.
    pub(crate) fn keep(&mut self, question: String, result: &Value) {
        let Some(slot) = slot_of(result) else { return };
        if self.0.len() >= QUESTIONS && !self.0.contains_key(&question) {
            return;
        }
        let answers = self.0.entry(question).or_default();
        if answers.len() >= ANSWERS {
            answers.pop_front();
        }
        answers.push_back((slot, result.clone()));
    }

    /// The latest answer that is so many slots older than `now`, or else the oldest.
    pub(crate) fn older(&self, question: &str, now: &Value, slots: u64) -> Option<(u64, Value)> {
        let limit = slot_of(now)?.saturating_sub(slots);
        let answers = self.0.get(question)?;
        answers.iter().rev().find(|(slot, _)| *slot <= limit).or_else(|| answers.front()).cloned()
    }
}

/// The slot that a result is of, if it tells.
fn slot_of(result: &Value) -> Option<u64> {
    result.pointer("/context/slot").unwrap_or(result).as_u64()
}

/// A question's method and parameters, whatever slot it wants to have been seen.
pub(crate) fn question(request: &Value) -> String {
    let mut params = request["params"].clone();
    for param in params.as_array_mut().into_iter().flatten() {
        if let Some(config) = param.as_object_mut() {
            config.remove("minContextSlot");
        }
    }
    format!("{} {params}", request["method"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_found_by_how_much_older_it_is() {
        let mut recorded = Recorded::default();
        let answer = |slot: u64| json!({ "context": { "slot": slot }, "value": slot });
        for slot in [10, 20, 30] {
            recorded.keep("q".to_owned(), &answer(slot));
        }
        let older = |slots| recorded.older("q", &answer(32), slots).map(|(slot, _)| slot);
        assert_eq!([older(0), older(5), older(12), older(100)], [Some(30), Some(20), Some(20), Some(10)]);
        assert_eq!(recorded.older("other", &answer(32), 0), None);
    }

    #[test]
    fn the_slot_that_is_wanted_does_not_make_another_question() {
        let with = json!({ "id": 1, "method": "m", "params": ["a", { "minContextSlot": 5, "b": 1 }] });
        let without = json!({ "id": 2, "method": "m", "params": ["a", { "b": 1 }] });
        assert_eq!(question(&with), question(&without));
    }
}
