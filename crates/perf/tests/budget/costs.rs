//! Costs of operations, and `ci/counts`, which limits them.

use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

/// What happens once or twice in a longer run, such as a thread of the process that looks at something, is no cost of an
/// operation.
const ONCE: f64 = 0.02;
/// What that takes of instructions and stored bytes, of which there are many in one look.
const LOOK: f64 = 0.1;

/// A cost that is not counted, for it is never the same.
pub const NOT_COUNTED: f64 = f64::INFINITY;

/// What an operation costs, or may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    pub instructions: f64,
    pub system_calls: f64,
    /// Bytes.
    pub stored: f64,
    pub allocations: f64,
}

impl Costs {
    fn named(self) -> [(&'static str, f64); 4] {
        [
            ("instructions", self.instructions),
            ("system calls", self.system_calls),
            ("bytes stored", self.stored),
            ("allocations", self.allocations),
        ]
    }

    /// The line of `ci/counts`.
    pub fn line(self, operation: &str) -> String {
        let number = |cost: f64| if cost == NOT_COUNTED { "-".to_owned() } else { cost.ceil().to_string() };
        let numbers = self.named().map(|(_, cost)| number(cost));
        format!("{operation} : {}", numbers.join(" "))
    }

    /// In what it exceeds the budget.
    pub fn over(self, budget: Costs) -> Vec<String> {
        let pairs = self.named().into_iter().zip(budget.named());
        let over = pairs
            .zip([LOOK, ONCE, LOOK, ONCE])
            .filter(|(((_, cost), (_, budget)), rare)| *cost > budget + rare);
        let over = over.map(|(pair, _)| pair);
        over.map(|((name, cost), (_, budget))| format!("{cost} {name}, and may take {budget}")).collect()
    }

    /// Whether it allows neither system calls, if they are counted, nor allocations.
    pub fn has_no_calls_nor_allocations(&self) -> bool {
        [0.0, NOT_COUNTED].contains(&self.system_calls) && self.allocations == 0.0
    }
}

/// The budgets of `ci/counts`, by operation.
pub fn budgets() -> Result<BTreeMap<String, Costs>> {
    let path = gasworks_testkit::root().join("ci/counts");
    parse(&std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?)
}

/// The budgets of a text, by operation.
pub fn parse(text: &str) -> Result<BTreeMap<String, Costs>> {
    let mut budgets = BTreeMap::new();
    for (number, operation, numbers) in gasworks_testkit::pairs_of(text) {
        let wanted = || {
            format!(
                "ci/counts, line {number}: wanted `OPERATION : INSTRUCTIONS SYSTEM-CALLS STORED ALLOCATIONS`"
            )
        };
        let cost = |word: &str| match word {
            "-" => Ok(NOT_COUNTED),
            word => word.parse::<u32>().map(f64::from),
        };
        let numbers: Vec<f64> = numbers
            .with_context(wanted)?
            .split_whitespace()
            .map(cost)
            .collect::<Result<_, _>>()
            .with_context(wanted)?;
        let [instructions, system_calls, stored, allocations] = numbers[..] else { bail!("{}", wanted()) };
        let costs = Costs { instructions, system_calls, stored, allocations };
        ensure!(budgets.insert(operation.to_owned(), costs).is_none(), "ci/counts has {operation} twice");
    }
    Ok(budgets)
}

const COSTS: Costs = Costs { instructions: 55.2, system_calls: 0.0, stored: 87.0, allocations: 0.0 };

pub fn each_exceeded_cost_is_found() -> Result<()> {
    let budget = parse(&COSTS.line("put-8"))?["put-8"];
    assert_eq!(budget.instructions, 56.0, "a line allows what was counted");
    assert_eq!(COSTS.over(budget), [""; 0]);
    let uncounted =
        Costs { instructions: NOT_COUNTED, system_calls: NOT_COUNTED, stored: NOT_COUNTED, allocations: 0.0 };
    assert_eq!(uncounted.line("scan"), "scan : - - - 0");
    let budget_of_all = parse(&uncounted.line("scan"))?["scan"];
    assert_eq!((uncounted.over(budget_of_all), COSTS.over(budget_of_all)), (vec![], vec![]));
    assert_eq!(Costs { allocations: 1.0, ..uncounted }.over(budget_of_all).len(), 1);
    let rare = Costs { allocations: 0.01, stored: 87.05, ..COSTS };
    assert_eq!(rare.over(budget), [""; 0], "one in a hundred operations");
    let dearer = [
        (Costs { instructions: 56.2, ..COSTS }, "56.2 instructions, and may take 56"),
        (Costs { system_calls: 0.03, ..COSTS }, "0.03 system calls, and may take 0"),
        (Costs { stored: 95.0, ..COSTS }, "95 bytes stored, and may take 87"),
        (Costs { allocations: 1.0, ..COSTS }, "1 allocations, and may take 0"),
    ];
    for (costs, found) in dearer {
        assert_eq!(costs.over(budget), [found]);
    }
    Ok(())
}

pub fn wrong_lines_are_named() -> Result<()> {
    for text in ["# why\nput-8", "# why\nput-8 : 1 2 3", "# why\nput-8 : 1 2 3 x"] {
        assert!(parse(text).unwrap_err().to_string().contains("line 2"), "{text}");
    }
    assert!(parse("a : 1 0 0 0\na : 1 0 0 0").unwrap_err().to_string().contains("twice"));
    Ok(())
}
