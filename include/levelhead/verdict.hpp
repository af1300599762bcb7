// Heads described, models judged.
#pragma once
