//! Elementary functions with bitwise identical results on all processors.
//!
//! The C library's results differ in the last bit between processors with and without fused multiply-add, but estimates
//! must not depend on the machine. A test ensures that other crates do not call the standard functions.

/// Smallest integer that is not less than `x`, for `x` of at least 0.
///
/// Five instructions. The standard function is a call on x86-64 processors, unless compiled for those with SSE 4.1.
#[must_use]
#[inline]
pub fn ceil_positive(x: f64) -> f64 {
    // From here on, all numbers are integers, and adding a smaller number rounds to an integer.
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    if x >= INTEGERS {
        return x;
    }
    let nearest = (x + INTEGERS) - INTEGERS;
    if nearest < x { nearest + 1.0 } else { nearest }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($($argument:ident),+) = $of:ident;)+) => {
        $($(#[$doc])* #[must_use] #[inline] pub fn $name($($argument: f64),+) -> f64 { libm::$of($($argument),+) })+
    };
}

functions! {
    /// *e* to the power of `x`.
    exp(x) = exp;
    /// 2 to the power of `x`.
    exp2(x) = exp2;
    /// *e* to the power of `x`, minus 1, accurate for `x` near 0.
    exp_m1(x) = expm1;
    /// Natural logarithm.
    ln(x) = log;
    /// Natural logarithm of 1 + `x`, accurate for `x` near 0.
    ln_1p(x) = log1p;
    /// Logarithm to the base 2.
    log2(x) = log2;
    /// Logarithm to the base 10.
    log10(x) = log10;
    /// `x` to the power of `y`.
    powf(x, y) = pow;
    /// Cube root.
    cbrt(x) = cbrt;
    /// Complementary error function.
    erfc(x) = erfc;
    /// Hyperbolic tangent.
    tanh(x) = tanh;
    /// Sine of radians.
    sin(x) = sin;
    /// Cosine of radians.
    cos(x) = cos;
    /// Length of the hypotenuse.
    hypot(x, y) = hypot;
}
