// General plasmon pole self-energy, after the proxy application of BerkeleyGW: complex double arithmetic whose intensity grows
// with the number of frequencies nw, since each pair of plane waves is loaded once for all of them.
//   gpp --nw 1..6 --stride S --fma 0|1 --divide 0|1 --bands N --waves N --coulomb N
#include <cmath>

#include "app.hpp"

namespace {

struct Complex {
  double re, im;
};

// With and without fused multiply-adds, whatever the compiler would choose.
template <bool Fma>
__host__ __device__ inline double multiply_add(double x, double y, double z) {
#if defined(__CUDA_ARCH__)
  return Fma ? __fma_rn(x, y, z) : __dadd_rn(__dmul_rn(x, y), z);
#else
  return Fma ? std::fma(x, y, z) : x * y + z;
#endif
}
template <bool Fma>
__host__ __device__ inline Complex multiply(Complex a, Complex b) {
  return {multiply_add<Fma>(a.re, b.re, -a.im * b.im), multiply_add<Fma>(a.re, b.im, a.im * b.re)};
}

struct Problem {
  const Complex *poles, *screening, *matrix;  // poles, screening: [coulomb][waves]; matrix: [bands][waves]
  const double* energies;                     // [bands]
  Complex* sums;                              // [blocks][nw]
  int bands, waves, coulomb, stride;
};

// One band, pole and frequency: pole * conj(w - pole) / |w - pole|^2 * screening.
template <bool Fma, bool Divide>
__host__ __device__ inline Complex term(double frequency, Complex pole, Complex screening) {
  const Complex difference = {frequency - pole.re, pole.im};  // conj(w - pole)
  const double size = multiply_add<Fma>(difference.re, difference.re, difference.im * difference.im);
  const Complex product = multiply<Fma>(pole, difference);
  const double inverse = 1.0 / size;
  const Complex quotient =
      Divide ? Complex{product.re / size, product.im / size} : Complex{product.re * inverse, product.im * inverse};
  return multiply<Fma>(quotient, screening);
}
__host__ __device__ inline double frequency(double energy, int w) { return energy + 0.5 * w; }

constexpr int kThreads = 256;

// Block (b, c): band b with Coulomb vector c, threads over plane waves `stride` apart.
template <int Nw, bool Fma, bool Divide>
__global__ void __launch_bounds__(kThreads) gpp(Problem problem) {
  const int band = blockIdx.x, row = blockIdx.y;
  Complex sums[Nw] = {};
  for (int i = threadIdx.x; i < problem.waves; i += kThreads) {
    const int wave = static_cast<int>(static_cast<long long>(i) * problem.stride % problem.waves);
    const size_t at = static_cast<size_t>(row) * problem.waves + wave;
    const Complex pole = problem.poles[at], screening = problem.screening[at];
    const Complex element = problem.matrix[static_cast<size_t>(band) * problem.waves + wave];
#pragma unroll
    for (int w = 0; w < Nw; ++w) {
      const Complex part = multiply<Fma>(term<Fma, Divide>(frequency(problem.energies[band], w), pole, screening), element);
      sums[w].re += part.re;
      sums[w].im += part.im;
    }
  }
  __shared__ Complex partial[kThreads];
  for (int w = 0; w < Nw; ++w) {
    partial[threadIdx.x] = sums[w];
    for (int half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < half) {
        partial[threadIdx.x].re += partial[threadIdx.x + half].re;
        partial[threadIdx.x].im += partial[threadIdx.x + half].im;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) problem.sums[(static_cast<size_t>(row) * problem.bands + band) * Nw + w] = partial[0];
  }
}

// As written, per band, row, wave and frequency: 1 + 3 (difference, size), 6 per complex product of three, divide(s), scaling,
// sum.
double operations(bool divide) { return 1 + 3 + 3 * 6 + (divide ? 2 : 3) + 2; }

template <int Nw, bool Fma, bool Divide>
double launch(const Problem& problem) {
  const dim3 grid(problem.bands, problem.coulomb);
  return app::seconds([&] { gpp<Nw, Fma, Divide><<<grid, kThreads>>>(problem); });
}
template <int Nw>
double launch(const Problem& problem, bool fma, bool divide) {
  if (fma) return divide ? launch<Nw, true, true>(problem) : launch<Nw, true, false>(problem);
  return divide ? launch<Nw, false, true>(problem) : launch<Nw, false, false>(problem);
}
double launch(int nw, const Problem& problem, bool fma, bool divide) {
  using Launch = double (*)(const Problem&, bool, bool);
  constexpr Launch kLaunches[] = {launch<1>, launch<2>, launch<3>, launch<4>, launch<5>, launch<6>};
  return kLaunches[nw - 1](problem, fma, divide);
}

std::vector<Complex> complexes(app::Random& random, size_t count, double low, double high) {
  std::vector<Complex> values(count);
  for (Complex& value : values) value = {random(low, high), random(low, high)};
  return values;
}

}  // namespace

int main(int count, char** texts) {
  const app::Options options(
      count, texts, {{"nw", 3}, {"stride", 1}, {"fma", 1}, {"divide", 0}, {"bands", 512}, {"waves", 32768}, {"coulomb", 20}});
  const int nw = options.within("nw", 1, 6), bands = options.within("bands", 1, 4096),
            waves = options.within("waves", 1, 1 << 20), coulomb = options.within("coulomb", 1, 1024),
            stride = options.within("stride", 1, 1 << 20);
  app::Random random;
  const auto poles = complexes(random, size_t(coulomb) * waves, 1, 2),
             screening = complexes(random, size_t(coulomb) * waves, 0.1, 1),
             matrix = complexes(random, size_t(bands) * waves, 0.1, 1);
  std::vector<double> energies(bands);
  for (double& energy : energies) energy = random(3, 4);
  const app::Array<Complex> poles_there(poles), screening_there(screening), matrix_there(matrix),
      sums(size_t(coulomb) * bands * nw);
  const app::Array<double> energies_there(energies);
  const Problem problem = {poles_there.get(),
                           screening_there.get(),
                           matrix_there.get(),
                           energies_there.get(),
                           sums.get(),
                           bands,
                           waves,
                           coulomb,
                           stride};
  const double time = launch(nw, problem, options["fma"] != 0, options["divide"] != 0);

  // The last row and band again, here.
  const std::vector<Complex> found = sums.host();
  double worst = 0;
  for (int w = 0; w < nw; ++w) {
    Complex sum = {};
    for (int i = 0; i < waves; ++i) {
      const size_t wave = size_t(static_cast<long long>(i) * stride % waves), at = size_t(coulomb - 1) * waves + wave;
      const Complex part = multiply<true>(term<true, true>(frequency(energies[bands - 1], w), poles[at], screening[at]),
                                          matrix[size_t(bands - 1) * waves + wave]);
      sum.re += part.re;
      sum.im += part.im;
    }
    const Complex got = found[(size_t(coulomb) * bands - 1) * nw + w];
    worst = std::fmax(worst, std::hypot(got.re - sum.re, got.im - sum.im) / std::hypot(sum.re, sum.im));
  }
  return app::report("gpp", time, 1e-9 * operations(options["divide"] != 0) * nw * bands * double(waves) * coulomb, worst);
}
