//! What is told of many durations.

use std::time::Duration;

use serde::Serialize;

/// A sample of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Statistics {
    pub observations: usize,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub average: f64,
    pub percentile_95: f64,
    pub percentile_99: f64,
    pub standard_deviation: f64,
}

impl Statistics {
    /// All zeroes if there are none.
    pub fn of(sample: impl IntoIterator<Item = Duration>) -> Self {
        let mut sample: Vec<f64> = sample.into_iter().map(|duration| duration.as_secs_f64() * 1e6).collect();
        sample.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sample.first().copied(), sample.last().copied()) else {
            return Self::default();
        };
        let count = sample.len() as f64;
        let average = sample.iter().sum::<f64>() / count;
        let variance = sample.iter().map(|value| (value - average).powi(2)).sum::<f64>() / count;
        let percentile = |percent: f64| {
            let rank = (percent / 100.0 * count).ceil() as usize;
            sample.get(rank.saturating_sub(1)).copied().unwrap_or(max)
        };
        Self {
            observations: sample.len(),
            median: percentile(50.0),
            min,
            max,
            average,
            percentile_95: percentile(95.0),
            percentile_99: percentile(99.0),
            standard_deviation: variance.sqrt(),
        }
    }

    /// A row of a table, in whole microseconds.
    pub fn row(&self, name: &str) -> Vec<String> {
        let values = [
            self.median,
            self.min,
            self.max,
            self.average,
            self.percentile_95,
            self.percentile_99,
            self.standard_deviation,
        ];
        [name.to_owned(), self.observations.to_string()]
            .into_iter()
            .chain(values.map(|value| format!("{value:.0}")))
            .collect()
    }
}

/// Times of an arm over those of another one, repeat by repeat.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Ratios {
    pub median_ratio: f64,
    pub min_ratio: f64,
    pub max_ratio: f64,
}

impl Ratios {
    /// All zeroes if there are none.
    pub fn of(times: impl IntoIterator<Item = (Duration, Duration)>) -> Self {
        let ratio = |(arm, other): (Duration, Duration)| {
            arm.as_secs_f64() / other.as_secs_f64().max(f64::MIN_POSITIVE)
        };
        let mut ratios: Vec<f64> = times.into_iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |index: usize| ratios.get(index).copied().unwrap_or_default();
        Self {
            median_ratio: at(ratios.len() / 2),
            min_ratio: at(0),
            max_ratio: at(ratios.len().saturating_sub(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sorted_sample() {
        let of = |micros: &[u64]| Statistics::of(micros.iter().copied().map(Duration::from_micros));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let Statistics { median, min, max, average, percentile_95, percentile_99, .. } = of(&hundred);
        assert_eq!(
            [median, min, max, average, percentile_95, percentile_99].map(f64::round),
            [50.0, 1.0, 100.0, 51.0, 95.0, 99.0]
        );
        assert_eq!(of(&[]).observations, 0);
        assert_eq!((of(&[7]).median, of(&[7]).standard_deviation), (7.0, 0.0));
    }
}
