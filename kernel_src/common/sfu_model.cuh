#pragma once

// ex2.approx.ftz.f32 and rcp.approx.ftz.f32 as sm_90's special-function unit computes them, in
// integers.
//
// The unit interpolates by a quadratic. The top bits of the fraction choose a segment, the n bits
// below them are x, and the significand is
//
//   (c0 2^13 + bias + c1 x + c2 square(x)) >> 15
//
// where square(x) sums the partial products of x x that weigh at least 2^cut, in units of 2^cut:
// x_i x_j 2^(i + j + 1) of each pair i < j, and x_i 2^(2 i). Products below are never formed.
//
//         segments    n   cut   bias
//   ex2         64   17    19   6114   significand in units of 2^-23, without the hidden bit
//   rcp        128   16    17   2023   significand in units of 2^-24, 2^23 < significand <= 2^24
//
// Structure and coefficients were solved for from the instructions' results; the model equals all
// 2^23 fractions of each, which tests/kernel_src/sfu_test.cpp holds by digest. NaN gives
// 0x7fffffff.
//
// No floating-point operation is used, so no compiler, flag or rounding mode changes a bit.

#include "common/platform.cuh"

namespace broach::sfu {

/// A segment's coefficients.
struct Segment {
  int c0;
  int c1;
  int c2;
};

#if defined(BROACH_HOST)
#define BROACH_SFU_TABLE inline constexpr
#else
#define BROACH_SFU_TABLE static __device__ constexpr
#endif

// clang-format off
BROACH_SFU_TABLE Segment kEx2Segments[64] = {
    {3, 22713, 494}, {365386, 22960, 501}, {734750, 23210, 506}, {1108133, 23463, 511},
    {1485586, 23718, 518}, {1867145, 23977, 521}, {2252860, 24238, 527}, {2642777, 24502, 532},
    {3036940, 24768, 541}, {3435393, 25038, 546}, {3838184, 25311, 551}, {4245365, 25586, 559},
    {4656977, 25865, 564}, {5073072, 26147, 568}, {5493699, 26431, 577}, {5918905, 26719, 583},
    {6348741, 27010, 589}, {6783258, 27304, 596}, {7222505, 27602, 600}, {7666538, 27902, 609},
    {8115404, 28206, 615}, {8569160, 28513, 622}, {9027854, 28824, 627}, {9491545, 29138, 633},
    {9960285, 29455, 641}, {10434129, 29776, 647}, {10913133, 30100, 655}, {11397354, 30428, 661},
    {11886846, 30759, 670}, {12381669, 31094, 677}, {12881882, 31432, 686},
    {13387539, 31775, 691}, {13898703, 32121, 699}, {14415435, 32471, 705},
    {14937793, 32824, 715}, {15465837, 33182, 721}, {15999633, 33543, 730},
    {16539242, 33908, 739}, {17084727, 34277, 748}, {17636150, 34651, 753},
    {18193579, 35028, 763}, {18757078, 35409, 773}, {19326714, 35795, 779},
    {19902551, 36185, 787}, {20484659, 36579, 796}, {21073106, 36977, 806},
    {21667961, 37380, 813}, {22269293, 37787, 822}, {22877175, 38198, 833},
    {23491674, 38614, 842}, {24112865, 39035, 849}, {24740822, 39460, 858},
    {25375616, 39889, 870}, {26017322, 40324, 877}, {26666015, 40763, 887},
    {27321773, 41207, 896}, {27984672, 41655, 909}, {28654788, 42109, 917},
    {29332202, 42568, 925}, {30016992, 43031, 938}, {30709240, 43500, 946},
    {31409026, 43973, 959}, {32116431, 44452, 969}, {32831540, 44936, 980},
};

BROACH_SFU_TABLE Segment kRcpSegments[128] = {
    {67108864, -65534, 1013}, {66588642, -64522, 989}, {66076422, -63533, 966},
    {65572021, -62567, 945}, {65075262, -61622, 923}, {64585976, -60699, 902},
    {64103992, -59797, 883}, {63629146, -58914, 863}, {63161284, -58051, 845},
    {62700254, -57207, 827}, {62245905, -56381, 809}, {61798091, -55572, 791},
    {61356677, -54781, 774}, {60921524, -54007, 758}, {60492499, -53249, 742},
    {60069474, -52507, 727}, {59652325, -51780, 711}, {59240930, -51068, 696},
    {58835170, -50371, 682}, {58434930, -49688, 669}, {58040099, -49019, 656},
    {57650569, -48363, 642}, {57266231, -47721, 631}, {56886986, -47091, 618},
    {56512729, -46473, 605}, {56143366, -45868, 594}, {55778798, -45274, 582},
    {55418934, -44692, 572}, {55063686, -44121, 561}, {54712961, -43560, 549},
    {54366677, -43011, 540}, {54024747, -42471, 529}, {53687093, -41942, 519},
    {53353633, -41423, 510}, {53024288, -40913, 501}, {52698987, -40412, 490},
    {52377651, -39921, 482}, {52060212, -39439, 474}, {51746596, -38965, 465},
    {51436737, -38500, 457}, {51130565, -38043, 449}, {50828017, -37594, 441},
    {50529029, -37153, 433}, {50233538, -36720, 426}, {49941482, -36294, 418},
    {49652803, -35876, 412}, {49367442, -35464, 403}, {49085342, -35060, 397},
    {48806449, -34663, 390}, {48530705, -34272, 383}, {48258060, -33888, 377},
    {47988464, -33511, 371}, {47721861, -33140, 366}, {47458204, -32774, 358},
    {47197444, -32415, 353}, {46939534, -32062, 348}, {46684429, -31714, 341},
    {46432082, -31373, 337}, {46182446, -31036, 331}, {45935480, -30705, 326},
    {45691143, -30379, 320}, {45449392, -30059, 316}, {45210185, -29743, 310},
    {44973481, -29432, 305}, {44739244, -29127, 302}, {44507436, -28826, 297},
    {44278016, -28529, 291}, {44050948, -28237, 287}, {43826199, -27950, 283},
    {43603730, -27667, 279}, {43383510, -27388, 274}, {43165503, -27114, 271},
    {42949675, -26843, 266}, {42735995, -26577, 263}, {42524430, -26314, 258},
    {42314950, -26056, 256}, {42107525, -25801, 251}, {41902122, -25550, 248},
    {41698714, -25302, 243}, {41497270, -25058, 240}, {41297764, -24818, 237},
    {41100168, -24581, 233}, {40904453, -24348, 231}, {40710593, -24117, 226},
    {40518561, -23890, 223}, {40328333, -23667, 222}, {40139883, -23446, 218},
    {39953186, -23228, 214}, {39768218, -23014, 212}, {39584955, -22802, 208},
    {39403371, -22593, 205}, {39223448, -22388, 204}, {39045159, -22184, 199},
    {38868484, -21984, 197}, {38693401, -21787, 196}, {38519888, -21592, 193},
    {38347924, -21399, 189}, {38177489, -21209, 186}, {38008563, -21022, 184},
    {37841123, -20837, 182}, {37675154, -20655, 180}, {37510633, -20475, 178},
    {37347543, -20297, 175}, {37185866, -20122, 173}, {37025582, -19949, 171},
    {36866673, -19778, 169}, {36709124, -19609, 166}, {36552915, -19443, 165},
    {36398030, -19278, 161}, {36244452, -19116, 160}, {36092164, -18956, 159},
    {35941151, -18797, 155}, {35791396, -18641, 154}, {35642884, -18487, 153},
    {35495599, -18334, 150}, {35349528, -18184, 149}, {35204652, -18035, 147},
    {35060959, -17888, 145}, {34918436, -17743, 143}, {34777064, -17600, 143},
    {34636835, -17458, 140}, {34497732, -17318, 138}, {34359741, -17180, 137},
    {34222849, -17043, 135}, {34087044, -16908, 133}, {33952313, -16775, 132},
    {33818641, -16643, 131}, {33686019, -16513, 130},
};
// clang-format on

#undef BROACH_SFU_TABLE

constexpr unsigned kNan = 0x7fffffffu;
constexpr unsigned kInfinity = 0x7f800000u;

/// square(x) of an x of kBits bits, truncated at weight 2^kCut.
template <int kBits, int kCut>
BROACH_DEVICE unsigned truncated_square(unsigned x) {
  unsigned long long sum = 0;
  BROACH_UNROLL
  for (int j = kCut / 2; j < kBits; ++j) {
    // Bits i < j whose product with bit j weighs enough.
    const int least = kCut - 1 - j > 0 ? kCut - 1 - j : 0;
    const unsigned below = ((1u << j) - 1u) & ~((1u << least) - 1u);
    const unsigned own = 2 * j >= kCut ? 1u << (j - 1) : 0u;
    const unsigned long long row = static_cast<unsigned long long>((x & below) + own) << (j + 1);
    sum += (x >> j & 1u) != 0 ? row : 0;
  }
  return static_cast<unsigned>(sum >> kCut);
}

template <int kBits, int kCut, int kBias>
BROACH_DEVICE unsigned interpolate(const Segment& segment, unsigned x) {
  const long long sum = segment.c0 * 8192ll + kBias + static_cast<long long>(segment.c1) * x +
                        static_cast<long long>(segment.c2) * truncated_square<kBits, kCut>(x);
  return static_cast<unsigned>(sum >> 15);
}

/// The 23-bit fraction of 2^(fraction 2^-23).
BROACH_DEVICE unsigned ex2_fraction(unsigned fraction) {
  return interpolate<17, 19, 6114>(kEx2Segments[fraction >> 17], fraction & 0x1ffffu);
}

/// 1 / (1 + fraction 2^-23) in units of 2^-24.
BROACH_DEVICE unsigned rcp_significand(unsigned fraction) {
  return interpolate<16, 17, 2023>(kRcpSegments[fraction >> 16], fraction & 0xffffu);
}

/// ex2.approx.ftz.f32 on bits.
///
/// The argument is cut to units of 2^-23 by truncation; a negative one's fraction is taken by one's
/// complement. Results below 2^-126 are +0; the sign of zero does not matter.
BROACH_DEVICE unsigned ex2(unsigned bits) {
  const unsigned magnitude = bits & 0x7fffffffu;
  const bool negative = bits >> 31 != 0;
  if (magnitude > kInfinity) return kNan;
  if (magnitude >= 0x44800000u) return negative ? 0u : kInfinity;  // 1024 and beyond
  const int field = static_cast<int>(magnitude >> 23);
  // Below 2^-23 nothing is left of the argument; subnormals are zero.
  unsigned long long units = 0;
  if (field >= 127 - 23) {
    const unsigned long long significand = (magnitude & 0x7fffffu) | 0x800000u;
    units = field >= 127 ? significand << (field - 127) : significand >> (127 - field);
  }
  const unsigned fraction = static_cast<unsigned>(units) & 0x7fffffu;
  int exponent = static_cast<int>(units >> 23);
  unsigned result = fraction;
  if (negative) {
    exponent = fraction == 0 ? -exponent : -exponent - 1;
    result = fraction == 0 ? 0u : 0x7fffffu - fraction;
  }
  if (exponent < -126) return 0;
  if (exponent > 127) return kInfinity;
  return static_cast<unsigned>(exponent + 127) << 23 | ex2_fraction(result);
}

/// rcp.approx.ftz.f32 on bits. Zeros and subnormals give infinity and results below 2^-126 zero,
/// with the argument's sign.
BROACH_DEVICE unsigned rcp(unsigned bits) {
  const unsigned magnitude = bits & 0x7fffffffu;
  const unsigned sign = bits & 0x80000000u;
  if (magnitude > kInfinity) return kNan;
  if (magnitude == kInfinity) return sign;
  if (magnitude < 0x00800000u) return sign | kInfinity;
  const unsigned significand = rcp_significand(magnitude & 0x7fffffu);
  // 2^24 is 1, one binade above every other significand.
  const int field = 254 - static_cast<int>(magnitude >> 23) - (significand >> 24 == 0 ? 1 : 0);
  if (field < 1) return sign;
  return sign | static_cast<unsigned>(field) << 23 | (significand & 0x7fffffu);
}

}  // namespace broach::sfu
