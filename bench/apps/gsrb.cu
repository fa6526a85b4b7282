// Red-black Gauss-Seidel smoother on boxes of n^3 cells, after HPGMG, in three variants of how a sweep skips the other colour:
//   fp: every cell, the change multiplied by 0 or 1;  branch: an if;  stride2: half as many threads, all cells of the colour.
//   gsrb --variant 0|1|2 --n 16..128 --boxes N --sweeps N
#include <cmath>

#include "app.hpp"

namespace {

enum Variant { kFp, kBranch, kStride2 };

struct Level {
  double* phi;
  const double *rhs, *lambda;
  int n;         // cells per edge; boxes have a ghost layer of one cell
  double scale;  // 1 / h^2
};

__host__ __device__ inline size_t cell(int n, int box, int i, int j, int k) {
  const size_t edge = n + 2;
  return ((static_cast<size_t>(box) * edge + k + 1) * edge + j + 1) * edge + i + 1;
}

// lambda * (rhs - A phi) with the seven-point Laplacian.
__host__ __device__ inline double change(const Level& level, size_t at) {
  const size_t row = level.n + 2, plane = row * row;
  const double* phi = level.phi;
  const double neighbours = phi[at - 1] + phi[at + 1] + phi[at - row] + phi[at + row] + phi[at - plane] + phi[at + plane];
  return level.lambda[at] * (level.rhs[at] - level.scale * (6.0 * phi[at] - neighbours));
}
constexpr double kOperations = 6 + 2 + 1 + 1 + 1 + 1;  // neighbours, 6 phi - them, scale, rhs -, lambda, phi +

// A thread per cell (per two cells with stride2) of a plane, marching along k.
template <Variant V>
__global__ void gsrb(Level level, int colour) {
  const int n = level.n, box = blockIdx.z, j = blockIdx.y * blockDim.y + threadIdx.y;
  const int across = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= n) return;
  for (int k = 0; k < n; ++k) {
    const int i = V == kStride2 ? 2 * across + ((j + k + colour) & 1) : across;
    if (i >= n) continue;
    const size_t at = cell(n, box, i, j, k);
    const bool mine = ((i + j + k + colour) & 1) == 0;
    if (V == kFp)
      level.phi[at] += (mine ? 1.0 : 0.0) * change(level, at);
    else if (V == kStride2 || mine)
      level.phi[at] += change(level, at);
  }
}

double sweep(Variant variant, const Level& level, int boxes, int colour) {
  const dim3 block(32, 8);
  const int across = variant == kStride2 ? (level.n + 1) / 2 : level.n;
  const dim3 grid((across + 31) / 32, (level.n + 7) / 8, boxes);
  return app::seconds([&] {
    if (variant == kFp)
      gsrb<kFp><<<grid, block>>>(level, colour);
    else if (variant == kBranch)
      gsrb<kBranch><<<grid, block>>>(level, colour);
    else
      gsrb<kStride2><<<grid, block>>>(level, colour);
  });
}

}  // namespace

int main(int count, char** texts) {
  const app::Options options(count, texts, {{"variant", 0}, {"n", 64}, {"boxes", 64}, {"sweeps", 10}});
  const auto variant = static_cast<Variant>(options.within("variant", 0, 2));
  const int n = options.within("n", 2, 512), boxes = options.within("boxes", 1, 4096),
            sweeps = options.within("sweeps", 1, 10000);
  const size_t cells = size_t(boxes) * (n + 2) * (n + 2) * (n + 2);
  app::Random random;
  std::vector<double> phi(cells), rhs(cells), lambda(cells, 1.0 / 6.0);
  for (double& value : phi) value = random(-1, 1);
  for (double& value : rhs) value = random(-1, 1);
  const app::Array<double> phi_there(phi), rhs_there(rhs), lambda_there(lambda);
  double time = 0;
  for (int s = 0; s < sweeps; ++s)
    time += sweep(variant, {phi_there.get(), rhs_there.get(), lambda_there.get(), n, 1.0}, boxes, s % 2);

  // The last box again, here: cells of one colour depend on the other colour only, so the order does not matter.
  const Level here = {phi.data(), rhs.data(), lambda.data(), n, 1.0};
  for (int s = 0; s < sweeps; ++s)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j)
        for (int i = (j + k + s) & 1; i < n; i += 2)
          phi[cell(n, boxes - 1, i, j, k)] += change(here, cell(n, boxes - 1, i, j, k));
  const std::vector<double> found = phi_there.host();
  double worst = 0;
  for (size_t at = cell(n, boxes - 1, 0, 0, 0); at <= cell(n, boxes - 1, n - 1, n - 1, n - 1); ++at)
    worst = std::fmax(worst, std::fabs(found[at] - phi[at]));
  return app::report("gsrb", time, 1e-9 * kOperations * sweeps * boxes * double(n) * n * n / 2, worst);
}
