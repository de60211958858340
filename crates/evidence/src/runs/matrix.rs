//! Small symmetric matrices.

/// Cholesky factor L of a symmetric positive definite matrix L·Lᵀ.
#[derive(Debug, Clone)]
pub struct Cholesky {
    rows: Vec<Vec<f64>>,
}

impl Cholesky {
    /// Factors a matrix given by its rows. Returns `None` if it is not positive definite.
    #[must_use]
    pub fn of(matrix: &[Vec<f64>]) -> Option<Cholesky> {
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
        for (i, wanted) in matrix.iter().enumerate() {
            let mut row: Vec<f64> = Vec::with_capacity(i + 1);
            for (other, cell) in rows.iter().zip(wanted) {
                let dot: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                row.push((cell - dot) / other.last()?);
            }
            let rest = wanted.get(i)? - row.iter().map(|a| a * a).sum::<f64>();
            if !(rest > 0.0 && rest.is_finite()) {
                return None;
            }
            row.push(rest.sqrt());
            rows.push(row);
        }
        Some(Cholesky { rows })
    }

    /// Solves L·x = right.
    #[must_use]
    pub fn forward(&self, right: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = Vec::with_capacity(right.len());
        for (row, value) in self.rows.iter().zip(right) {
            let dot: f64 = row.iter().zip(&out).map(|(a, b)| a * b).sum();
            out.push((value - dot) / row.last().copied().unwrap_or(1.0));
        }
        out
    }

    /// Solves L·Lᵀ·x = right.
    #[must_use]
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut out = self.forward(right);
        for (i, row) in self.rows.iter().enumerate().rev() {
            let value = out.get(i).copied().unwrap_or(0.0) / row.last().copied().unwrap_or(1.0);
            for (slot, cell) in out.iter_mut().zip(row.iter().take(i)) {
                *slot -= cell * value;
            }
            if let Some(slot) = out.get_mut(i) {
                *slot = value;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn solving_inverts_multiplication() {
        let matrix = vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, -0.2], vec![0.5, -0.2, 2.0]];
        let x = [0.3, -1.2, 2.5];
        let right: Vec<f64> = matrix.iter().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect();
        let factored = Cholesky::of(&matrix).unwrap();
        for (found, wanted) in factored.solve(&right).iter().zip(x) {
            assert!((found - wanted).abs() < 1e-12);
        }
    }

    #[test]
    fn matrices_that_are_not_positive_definite_are_not_factored() {
        assert!(Cholesky::of(&[vec![1.0, 2.0], vec![2.0, 1.0]]).is_none());
        assert!(Cholesky::of(&[vec![f64::NAN]]).is_none());
    }
}
