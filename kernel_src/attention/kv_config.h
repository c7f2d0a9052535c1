#pragma once

/* What a kernel knows of the KV cache when it is compiled. No header is included; compiles as host
 * and device C++. */

namespace broach::attention {

/* Where the position of a key lies in its slot. */
enum class Layout : int { kLinear = 0, kRing = 1, kPaged = 2 };

struct KvConfig {
  Layout layout = Layout::kLinear;
  int layout_length = 0;        /* The ring's or the page's length; 0 for a linear cache. */
  bool at_run_time = false;     /* Generic kernels: a launch's RunTimeLayout says both instead. */
  bool checked = false;         /* Whether slots, positions and pages are checked on the device. */
  bool page_off_by_one = false; /* A planted fault: the next page table entry is read. */
};

/* What a generic kernel is told instead. */
struct RunTimeLayout {
  int layout; /* A Layout. */
  int length;
};

} /* namespace broach::attention */
