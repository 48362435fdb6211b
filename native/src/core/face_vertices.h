// The vertices of the FaceMesh topology that the model of a face is built from. Lip contours run
// from the left corner in the picture to the right one.
#pragma once
#include <array>

namespace mouthpiece::face {

inline constexpr std::array UPPER_INNER{61, 78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 291};
inline constexpr std::array LOWER_INNER{61, 78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 291};
inline constexpr std::array UPPER_OUTER{61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291};
inline constexpr std::array LOWER_OUTER{61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291};
// The lips' middle, from top to bottom.
inline constexpr std::array MOUTH_MIDDLE{0, 13, 14, 17};
inline constexpr std::array JAW{58,  172, 136, 150, 149, 176, 148, 152,
                                377, 400, 378, 379, 365, 397, 288};
inline constexpr std::array OVAL{10,  338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288,
                                 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150, 136,
                                 172, 58,  132, 93,  234, 127, 162, 21,  54,  103, 67,  109};
inline constexpr std::array LEFT_BROW{70, 63, 105, 66, 107, 46, 53, 52, 65, 55};
inline constexpr std::array RIGHT_BROW{300, 293, 334, 296, 336, 276, 283, 282, 295, 285};
// Margins of the upper lids, corner to corner.
inline constexpr std::array LEFT_LID{33, 246, 161, 160, 159, 158, 157, 173, 133};
inline constexpr std::array RIGHT_LID{362, 398, 384, 385, 386, 387, 388, 466, 263};
inline constexpr int EYE_LEFT = 33, EYE_RIGHT = 263, BRIDGE = 168, CHIN = 152, NOSE_BASE = 2,
                     MOUTH_LEFT = 61, MOUTH_RIGHT = 291, INNER_LEFT = 78, INNER_RIGHT = 308,
                     CHEEK_LEFT = 234, CHEEK_RIGHT = 454, NOSTRIL_LEFT = 129, NOSTRIL_RIGHT = 358,
                     INNER_EYE_LEFT = 133, INNER_EYE_RIGHT = 362;

}  // namespace mouthpiece::face
