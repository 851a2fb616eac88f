#| packages: numpy
#| tolerance: 1e-8
import numpy as np

t = np.arange(256) / 256
x = np.sin(2 * np.pi * 5 * t) + 0.5 * np.cos(2 * np.pi * 20 * t)
f = np.fft.rfft(x)
print(np.argsort(np.abs(f))[-2:], np.abs(f[[5, 20]]).round(6), np.fft.rfftfreq(256, 1 / 256)[:4])
print(np.allclose(np.fft.irfft(f), x), np.fft.fft([1, 2, 3, 4, 5]).round(9))
print(np.fft.fft2(np.arange(6).reshape(2, 3)).round(9), np.fft.fftshift(np.arange(6)))
print(np.fft.ifft(np.fft.fft(np.arange(7))).real.round(9), np.fft.hfft([1, 2, 1]).round(9))
print(np.convolve([1, 2, 3], [0, 1, 0.5]), np.correlate([1, 2, 3], [0, 1, 0.5], "full"))
print(np.interp([0.5, 1.5], [0, 1, 2], [0, 10, 40]), np.gradient(x)[:3], np.diff([1, 4, 9, 16]))
print(np.trapezoid(x, t), np.cumsum(x)[:3], np.hanning(5), np.kaiser(5, 14).round(8), np.sinc(0.5))
p = np.polynomial.Polynomial.fit(np.arange(6), [1, 3, 2, 5, 7, 8], 2)
print(
    p.convert().coef.round(8), p(2.5), np.roots([1, -6, 11, -6]).round(8), np.polyval([1, 0, 1], 3)
)
print(np.polynomial.chebyshev.chebval(0.3, [1, 2, 3]), np.polynomial.legendre.leggauss(4)[0])
