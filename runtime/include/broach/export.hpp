#pragma once

/// Marks what libbroach.so lets others call; everything else of it is hidden.
#define BROACH_API __attribute__((visibility("default")))
