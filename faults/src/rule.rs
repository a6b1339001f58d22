//! When something goes wrong.

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::Fault;

/// The method by which rules know a new websocket connection: whatever its fault is, the connection is not made.
pub const WEBSOCKET: &str = "websocket";

/// When something goes wrong: by default always, whatever is asked.
#[derive(Clone, Debug)]
pub struct Rule {
    method: Option<String>,
    fault: Fault,
    chance: f64,
    after: u64,
    times: u64,
}

impl Rule {
    /// A fault for every call.
    pub fn new(fault: Fault) -> Self {
        Self { method: None, fault, chance: 1.0, after: 0, times: u64::MAX }
    }

    /// Only for this method: one of JSON-RPC, [`WEBSOCKET`], or that of a message on a websocket, such as
    /// `signatureSubscribe` or `signatureNotification`.
    pub fn on(self, method: impl Into<String>) -> Self {
        Self { method: Some(method.into()), ..self }
    }

    /// Only by this chance, from 0 to 1.
    pub fn chance(self, chance: f64) -> Self {
        Self { chance, ..self }
    }

    /// Not for the first calls.
    pub fn after(self, calls: u64) -> Self {
        Self { after: calls, ..self }
    }

    /// Only so often.
    pub fn times(self, times: u64) -> Self {
        Self { times, ..self }
    }
}

/// The rules, and how often each was looked at and applied.
#[derive(Debug)]
pub(crate) struct Rules {
    seed: u64,
    /// Rules that there were before the last clearing: a rule's number makes its chances its own.
    cleared: u64,
    rules: Vec<(Rule, u64, u64)>,
}

impl Rules {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, cleared: 0, rules: Vec::new() }
    }

    pub(crate) fn add(&mut self, rule: Rule) {
        self.rules.push((rule, 0, 0));
    }

    pub(crate) fn clear(&mut self) {
        self.cleared += self.rules.len() as u64;
        self.rules.clear();
    }

    /// What happens to the next call of a method: the first rule that applies decides.
    pub(crate) fn next(&mut self, method: &str) -> Option<Fault> {
        for (number, (rule, looked, applied)) in (self.cleared..).zip(&mut self.rules) {
            if rule.method.as_deref().is_some_and(|of| of != method) {
                continue;
            }
            let call = *looked;
            *looked += 1;
            if call >= rule.after && *applied < rule.times && roll(self.seed, number, call) < rule.chance {
                *applied += 1;
                return Some(rule.fault.clone());
            }
        }
        None
    }
}

/// A number from 0 to 1 that depends on these three alone.
fn roll(seed: u64, rule: u64, call: u64) -> f64 {
    let mut bytes = [0; 32];
    for (bytes, number) in bytes.chunks_exact_mut(8).zip([seed, rule, call]) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    StdRng::from_seed(bytes).random()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64, rule: Rule) -> Vec<bool> {
        let mut rules = Rules::new(seed);
        rules.add(rule);
        (0..1_000).map(|_| rules.next("getSlot").is_some()).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults_and_another_one_others() {
        let rule = || Rule::new(Fault::Html).chance(0.3);
        assert_eq!(fates(7, rule()), fates(7, rule()));
        assert_ne!(fates(7, rule()), fates(8, rule()));
        let hit = fates(7, rule()).into_iter().filter(|hit| *hit).count();
        assert!((250..350).contains(&hit), "{hit} of 1,000 at 0.3");
    }

    #[test]
    fn a_rule_keeps_to_its_method_its_start_and_its_number() {
        let hits =
            |rule| fates(1, rule).iter().enumerate().filter(|(_, hit)| **hit).map(|(at, _)| at).collect();
        let hits: Vec<usize> = hits(Rule::new(Fault::Hang).on("getSlot").after(2).times(3));
        assert_eq!(hits, [2, 3, 4]);
        assert!(!fates(1, Rule::new(Fault::Hang).on("getBlockHeight")).contains(&true));
    }
}
