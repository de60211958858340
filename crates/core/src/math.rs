//! Elementary functions with bitwise identical results on all processors.
//!
//! The C library's results differ in the last bit between processors with and without fused multiply-add, but estimates
//! must not depend on the machine. A test ensures that other crates do not call the standard functions.

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
