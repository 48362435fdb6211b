// One session's face: draws frame after frame into the same picture and tells which macroblocks changed.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/face_eyes.h"
#include "core/face_inside.h"
#include "core/face_model.h"
#include "core/face_shape.h"
#include "core/face_warp.h"

namespace mouthpiece::face {

/** Not thread-safe; the model may be shared by renderers of one thread or of several. */
class Renderer {
 public:
  explicit Renderer(const Model& model, WarpRow warp_row = choose_warp_row());

  /**
   * Draws into `picture` (I420 of the asset's size, the same every time) what differs from the frame before, and writes 1 into
   * `dirty` (row by row of 16x16 macroblocks) where it drew, else 0.
   */
  void render(const Articulation& articulation, const Pose& pose, std::span<uint8_t> picture, std::span<uint8_t> dirty);
  /** Eases towards the mood over the next frames. */
  void set_emotion(int emotion, float strength);
  void invalidate() { valid_ = false; }

  size_t picture_bytes() const { return size_t(model_.asset.width) * size_t(model_.asset.height) * 3 / 2; }
  size_t macroblocks() const { return size_t(model_.asset.width / 16) * size_t(model_.asset.height / 16); }

 private:
  struct Box { int x0 = 0, y0 = 0, x1 = 0, y1 = 0; bool empty() const { return x0 >= x1 || y0 >= y1; } };   // multiples of 16
  struct Shift { int16_t x, y; };    // displacement of a node in 1/NODE_UNIT pixel
  struct Place { float x, y; };

  void limit(const Articulation& articulation, const Pose& pose);
  void move_head();
  void move_nodes();
  void move_node(int i, int j);
  void mark_changes(std::span<uint8_t> dirty) const;
  void mark(Box box, std::span<uint8_t> dirty) const;
  Box mouth_box() const;
  Box eye_box(const Eye& eye) const;
  Place head_shift(float x, float y) const;
  void draw_blocks(std::span<const uint8_t> dirty, uint8_t* picture);
  void draw_rows(const std::vector<Shift>& nodes, int plane, Box box, uint8_t* out, int stride, int out_x, int out_y);
  void draw_mouth(Box box, uint8_t* picture);
  void draw_mouth_rows(const Inside& inside, int cell_row, int x0, int x1, uint8_t* picture);
  void draw_eye(const Gaze& gaze, Box box, uint8_t* picture);
  Plane plane(int index) const;

  const Model& model_;
  const WarpRow warp_row_;
  bool valid_ = false;
  Mood mood_, goal_;
  Articulation articulation_{}, last_articulation_{};
  Pose pose_{}, last_pose_{};
  Mood last_mood_;
  Mouth mouth_;
  std::vector<Place> head_;                          // of each node: how far the head's pose moves it
  std::vector<Shift> nodes_, last_nodes_;            // whole displacement, on the lip's side where the node lies
  std::vector<Shift> upper_, lower_;                 // the same by either lip's side; only round the mouth
  std::vector<Place> local_;                         // of each node: its place in the resting mouth's frame, head's pose taken away; only round the mouth
  Box mouth_drawn_, eyes_drawn_[2];
  std::vector<int32_t> row_x_, row_y_;
  std::vector<uint8_t> by_upper_, by_lower_;
};

}  // namespace mouthpiece::face
