#pragma once

#include <memory>
#include <string_view>

#include "specializer/compilers.hpp"
#include "specializer/own/header_pack.hpp"
#include "specializer/target.hpp"

namespace broach::specializer::own {

/// Whose plans see the pack of a toolkit's headers, by its name: "cuda" or "hip". Nothing for any
/// other name.
std::optional<Vendor> vendor_of_toolkit_pack(std::string_view name);

/// The headers of a toolkit for device code as a pack: of CUDA's those that NVRTC takes
/// (cuda_fp16.h, mma.h, cooperative_groups.h, CUB, Thrust and libcu++), of ROCm's `hip/`,
/// `rocwmma/` and the libraries of templates. Other headers of the same directory are no part of
/// it: it may be /usr/include.
///
/// The directory is the option alone where it is set; else the one beside the compiler that
/// `find_compiler` finds, as toolkits and their packages lay it out, then the usual places. Where
/// there is none, the pack says so to whatever asks for a file: kNotFound with the paths tried.
///
/// Who asks while another holds the pack of the same directories gets that one.
///
/// Threads: any.
std::shared_ptr<const HeaderPack> toolkit_pack(Vendor vendor, const CompilersOptions& options);

}  // namespace broach::specializer::own
