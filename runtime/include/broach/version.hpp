#pragma once

#include "broach/version.h"
