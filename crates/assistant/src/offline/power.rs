//! Limits of power and prices of electricity in words, rewritten to settings.

use atlas_plan::knob::Knob;

use super::words::{Words, count};

/// Words for a limit of power.
const CAPS: [&str; 8] = ["cap", "caps", "capped", "capping", "limit", "limited", "limiting", "tdp"];
const WATTS: [&str; 4] = ["w", "watt", "watts", "-watt"];
/// Names of the accelerators in "limit each GPU to 500 W"; longer ones first.
const DEVICES: [&str; 14] = [
    "each gpu",
    "every gpu",
    "per gpu",
    "a gpu",
    "the gpus",
    "gpus",
    "each accelerator",
    "every accelerator",
    "per accelerator",
    "the accelerators",
    "accelerators",
    "each card",
    "per card",
    "cards",
];
const ENERGY: [&str; 3] = ["electricity", "energy", "power"];
const PRICES: [&str; 4] = ["prices", "price", "costs", "cost"];
/// Units of money, in USD.
const MONEY: [(&str, f64); 10] = [
    ("$", 1.0),
    ("usd", 1.0),
    ("dollars", 1.0),
    ("dollar", 1.0),
    ("cents", 0.01),
    ("cent", 0.01),
    ("ct", 0.01),
    ("c", 0.01),
    ("¢", 0.01),
    ("", 1.0),
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    let devices = DEVICES.iter().flat_map(|phrase| phrase.split(' '));
    CAPS.into_iter().chain(WATTS).chain(ENERGY).chain(PRICES).chain(MONEY.map(|(unit, _)| unit)).chain(devices).chain([
        "kwh",
        "kilowatt-hour",
        "free",
    ])
}

/// Rewrites "a power limit of 400 W" and "electricity at $0.20 per kWh" to settings.
pub(super) fn rewrite_power(words: &mut Words) {
    if cap(words) || price(words) {
        // Without a verb, "power limit 500 W" asks for the effect.
        let leads = ["to", "at", "the", "a", "if", "we", "of", "is"];
        let first = words.all().first().is_some_and(|word| word.contains('=') || leads.contains(&word.as_str()));
        if first {
            words.begin_with_what_if();
        }
    }
}

/// Number before one of the units, in one word.
fn amount(word: &str, units: &[&str]) -> Option<f64> {
    units.iter().find_map(|unit| count(word.strip_suffix(unit)?))
}

fn cap(words: &mut Words) -> bool {
    if !CAPS.iter().any(|cap| words.has(cap)) {
        return false;
    }
    let before = words.clone();
    let setting = |watts: f64| Some(vec![format!("{}={watts}", Knob::PowerCap.name())]);
    words.rewrite_pairs(|number, unit| setting(count(number).filter(|_| WATTS.contains(&unit))?));
    words.rewrite(|word| setting(amount(word, &WATTS)?));
    if *words == before {
        return false;
    }
    for word in CAPS.into_iter().chain(DEVICES).chain(["power"]) {
        words.take(word);
    }
    true
}

fn price(words: &mut Words) -> bool {
    for hour in ["kilowatt-hour", "kilowatt hour"] {
        words.replace(hour, &["kwh"]);
    }
    words.rewrite(|word| {
        let amount = word.strip_suffix("/kwh")?;
        Some([amount, "per", "kwh"].into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect())
    });
    for per in ["a kwh", "each kwh"] {
        words.replace(per, &["per", "kwh"]);
    }
    let before = words.clone();
    let setting = |usd: f64| vec![format!("{}={}", Knob::UsdPerKwh.name(), (usd * 1e6).round() / 1e6)];
    if words.replace("per kwh", &["kwh-price"]) {
        words.rewrite_triples(|number, unit, last| {
            let (_, usd) = MONEY.iter().find(|(name, _)| *name == unit && last == "kwh-price")?;
            Some(setting(count(number)? * usd))
        });
        words.rewrite_pairs(|number, last| {
            let number = number.strip_prefix('$').unwrap_or(number);
            let usd = MONEY.iter().find_map(|(unit, usd)| Some(count(number.strip_suffix(unit)?)? * usd));
            Some(setting(usd.filter(|_| last == "kwh-price")?))
        });
        // "$/kWh" without a number is a metric or a question for the price.
        words.replace("kwh-price", &["per", "kwh"]);
    }
    for energy in ENERGY {
        for verb in ["is", "were", "was", "becomes"] {
            let free = setting(0.0);
            words.replace(&format!("{energy} {verb} free"), &free.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    if *words == before {
        return false;
    }
    for energy in ENERGY {
        for price in PRICES {
            let _ = words.take(&format!("{energy} {price}")) || words.take(&format!("{price} of {energy}"));
        }
        words.take(energy);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_power_and_prices_of_electricity_become_settings() {
        let expected = [
            ("what if the power cap is 400 W", "what if the is power_cap=400"),
            ("power limit 500W", "what if power_cap=500"),
            ("what if we cap power at 400 watts", "what if we at power_cap=400"),
            ("what if we limit each GPU to 500 W", "what if we to power_cap=500"),
            ("limit power to 450W", "what if to power_cap=450"),
            ("TDP 350 W", "what if power_cap=350"),
            ("tokens per second with a power limit of 300 W", "tokens per second with a of power_cap=300"),
            ("electricity at $0.20 per kWh", "what if at usd_per_kwh=0.2"),
            ("what if electricity costs 20 cents per kWh", "what if usd_per_kwh=0.2"),
            ("what if power is $0.15/kWh", "what if is usd_per_kwh=0.15"),
            ("what if energy costs 0.3 dollars a kWh", "what if usd_per_kwh=0.3"),
            ("what if electricity were free", "what if usd_per_kwh=0"),
            // Not settings.
            ("what limits throughput", "what limits throughput"),
            ("a power below 5 kW", "a power below 5 kw"),
            ("how much power does it draw", "how much power does it draw"),
        ];
        for (line, wanted) in expected {
            let mut words = Words::of(line);
            rewrite_power(&mut words);
            assert_eq!(words.line(), wanted, "{line}");
        }
    }
}
