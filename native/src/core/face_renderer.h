// The renderer of one session's face: draws each frame into the same picture and reports which
// macroblocks changed.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/block_change.h"
#include "core/face_eyes.h"
#include "core/face_grey.h"
#include "core/face_model.h"
#include "core/face_mouth_interior.h"
#include "core/face_mouth_shape.h"
#include "core/face_warp.h"

namespace mouthpiece::face {

/** Not thread-safe. Renderers of several threads may share a model. */
class Renderer {
 public:
  /** @param model must outlive the renderer */
  explicit Renderer(const Model& model, const Warp& warp = choose_warp(),
                    DrawEye eye_drawing = choose_eye_drawing());

  /**
   * Draws what differs visibly from the previous frame. Smaller movements are left out: edges are
   * within a quarter of a pixel of where the input puts them, smooth areas within three pixels.
   * @param articulation, pose clamped to the face's limits; not a number counts as 0
   * @param picture picture_bytes() bytes of I420, the same buffer each time
   * @param dirty macroblocks() bytes in rows: receives a BlockChange each
   * @param motion empty, or two numbers for each macroblock: where what the block shows was in the
   * picture before, right and below of where it is now, in quarters of a pixel. Set where the
   * picture changed, as it is in the block's middle
   * @param may_shift whether blocks may be SHIFTED, which needs `motion`: most movements of a
   * block that moves as a whole are then left to the encoder
   */
  void render(const Articulation& articulation, const Pose& pose, std::span<uint8_t> picture,
              std::span<uint8_t> dirty, std::span<int16_t> motion = {}, bool may_shift = false);
  /** @param emotion as for mood_of @param strength 0 to 1; reached smoothly over the next frames */
  /** The next frame draws the whole picture. */
  void set_emotion(int emotion, float strength);
  void invalidate() { valid_ = false; }

  size_t picture_bytes() const {
    return size_t(model_.asset.width) * size_t(model_.asset.height) * 3 / 2;
  }
  size_t macroblocks() const {
    return size_t(model_.asset.width / 16) * size_t(model_.asset.height / 16);
  }

 private:
  static constexpr int RELIEF_STEPS = 8;
  static constexpr int SKIN_STEPS = 4;         // of folds and chin: they change less
  static constexpr float MOUTH_REACH = 1.35f;  // extent of the opening, half widths of the mouth

  struct Box {
    int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    bool empty() const { return x0 >= x1 || y0 >= y1; }
  };  // pixels, multiples of 16
  /** Displacements of all nodes, in 1/SUBPIXEL pixel. */
  struct Shifts {
    std::vector<int16_t> x, y;
    explicit Shifts(size_t nodes) : x(nodes + 8, 0), y(nodes + 8, 0) {}  // tiles read 8 nodes
  };
  /** Displacements or positions of all nodes, pixels. */
  struct Places {
    std::vector<float> x, y;
    explicit Places(size_t nodes) : x(nodes, 0.f), y(nodes, 0.f) {}
  };

  /**
   * Motion of a block: where it was, right and below of where it is, in quarters of a pixel; and by
   * how much less its nodes are displaced when it is shifted so, in 1/SUBPIXEL pixel.
   */
  struct Shift {
    int x, y, change_x, change_y;
  };

  static constexpr int PER_BLOCK = 16 / NODE_STEP;
  /** Displacements of a macroblock's nodes when it was drawn; those right of it are not used. */
  struct Drawn {
    static constexpr int ROWS = PER_BLOCK + 1, LANES = 8;
    int16_t x[ROWS][LANES] = {}, y[ROWS][LANES] = {};
    int16_t lag[ROWS][LANES] = {};  // how far each may be from there before it is drawn
    /** Jacobian of where what is shown comes from, and a factor of its inverse. */
    struct {
      float xx = 1, xy = 0, yx = 0, yy = 1, scale = 0;
    } field;
    int bend = 0;     // by how much the displacement is not linear, 1/SUBPIXEL pixel
    int strayed = 0;  // how far shifts since then may have missed, the same
    Shift shift{};    // of this frame, if it is shifted
  };

  /** A block that moves is drawn every so many frames, from the first on, and else shifted. */
  struct Turn {
    uint8_t first, every;
  };

  /** Where to draw: the planes' first pixel and the luma stride (twice that of chroma). */
  struct Target {
    uint8_t* y;
    uint8_t* u;
    uint8_t* v;
    int stride;
    /** @returns the target moved by (x, y) luma pixels */
    Target at(int x, int dy) const {
      return {y + dy * stride + x, u + dy / 2 * (stride / 2) + x / 2,
              v + dy / 2 * (stride / 2) + x / 2, stride};
    }
  };
  /** The lip seam at four pixels. */
  struct Seam {
    F4 x, y;          // positions in the mouth's coordinates
    F4 top, bottom;   // the lips' inner edges at x
    F4 side;          // 0 upper lip, 1 lower lip
    F4 cover, shade;  // opacity of the mouth's interior; share of light that the lips lose
  };

  void apply_limits(const Articulation& articulation, const Pose& pose);
  void displace_head();
  void displace_features();
  void displace_mouth();
  void assign_turns();
  void mark_changes(std::span<uint8_t> dirty, bool may_shift);
  bool is_shift_due(size_t k, bool head_moves) const;
  Shift shift_of(size_t k, size_t first) const;
  static void note_field(Drawn& drawn);
  int stray_of(size_t k, Shift shift) const;
  bool fits(size_t k, size_t first, Shift shift) const;
  /** @returns the first of the nodes of a macroblock of the grid */
  size_t first_node(int bx, int by) const {
    return size_t(model_.node(bx * PER_BLOCK, by * PER_BLOCK));
  }
  void remember_drawn(std::span<const uint8_t> dirty, std::span<int16_t> motion);
  void note_shift(size_t k);
  void note_drawn(int bx, int by, Drawn& drawn) const;
  void mark(Box box, std::span<uint8_t> dirty) const;
  void update_relief(std::span<uint8_t> dirty);
  void mark_relief(std::span<const uint8_t> cells, unsigned kinds, std::span<uint8_t> dirty) const;
  bool touched(Box box, std::span<const uint8_t> dirty) const;
  Box grid_box(float left, float top, float right, float bottom) const;
  Box mouth_box() const;
  Box eye_box(const EyeOverlay& overlay) const;
  Area moved(const Area& area) const;
  bool is_seam(int x, int y) const;
  Nodes nodes_at(const Shifts& nodes, int x, int y) const;
  Target target(uint8_t* picture, int x, int y) const;
  void draw_box(const Shifts& nodes, Box box, const Target& out) const;
  void draw_relief(const Shifts& nodes, Box box, bool at_seam, const Target& out) const;
  void draw_layer(size_t layer, const Shifts& nodes, Box box, bool at_seam,
                  const Target& out) const;
  void draw_skin(const Shifts& nodes, Box box, bool at_seam, const Target& out) const;
  bool near_relief(int x, int y) const;
  void draw_blocks(std::span<const uint8_t> dirty, uint8_t* picture) const;
  void draw_mouth(Box box, uint8_t* picture);
  void draw_seam(Box box, uint8_t* picture);
  void draw_cell(int left, int top, const Target& upper, const Target& lower, const Target& out);
  void add_blurred(Box box, uint8_t* picture);
  Seam seam_at(size_t k, F4 x, F4 y, float half) const;
  void draw_eye(const EyeOverlay& overlay, Box box, std::span<const uint8_t> dirty,
                uint8_t* picture) const;

  const Model& model_;
  const Warp& warp_;
  const DrawEye draw_eye_;
  bool valid_ = false;
  Mood mood_, goal_;
  Articulation articulation_{}, last_articulation_{};
  Pose pose_{}, last_pose_{};
  Mood last_mood_;
  Mouth mouth_;
  MouthInterior interior_;
  Places head_;               // displacement of each node by the head's pose
  std::vector<float> raise_;  // what brows and cheeks do at each node, where the head is neutral
  Shifts head_nodes_;         // the same in 1/SUBPIXEL pixel
  Shifts nodes_;              // total displacement, on the side of the seam where the node is
  Shifts upper_, lower_;      // the same on either side of the seam; only near the mouth
  Places local_;  // position of each node in the mouth's coordinates without the head's pose; only
                  // near the mouth
  std::vector<uint8_t> seam_;  // whether a lip's edge may be in a node's cell; only near the mouth
  std::array<int, Relief::LAYERS> relief_{};  // strength of each layer, 0 to RELIEF_STEPS
  std::array<int, Relief::KINDS> skin_{};     // strength of each change of the skin, the same
  Box seam_box_;  // where cells near a lip's edge are drawn with both lips
  Box mouth_drawn_, eyes_drawn_[2];
  // Of each macroblock of the grid:
  std::vector<Drawn> drawn_;
  std::vector<Turn> turns_;
  static constexpr int8_t JUST_DRAWN = -1;  // in the last frame
  std::vector<int8_t> shifted_for_;  // frames since it was shifted; 0: it was drawn since then
  std::vector<uint8_t> shifts_;      // since it was drawn
  bool has_shifted_ = false;
  unsigned frame_ = 0;
  std::vector<uint8_t> by_upper_, by_lower_;
  std::array<Grey, 3> added_;  // in a blurred portrait: what the mouth adds to the lips, Y, U and V
};

}  // namespace mouthpiece::face
