// How an eye's pixels are drawn, for vectors of any width. No header of its own:
// face_eye_drawing.cc and face_eye_drawing_avx2.cc include it in a namespace that has LANES, the
// vectors F and I with their functions (face_simd.h), Taps, and the functions that follow.
//
//   Margins margins_at(const Eye&, F t)           the lids' margins at shares of the eye's length
//   F between_nodes(const int16_t*, int next, F)  of LANES pixels; each four share their nodes
//   F along(float)                                0, 1, 2 … times a number
//   F along_cell(float)                           the same, from 0 again for each four
//   F take(const uint8_t*), void put(F, I mask, uint8_t*)
//
// EYE_TARGET is the attribute of functions.

/** What the eye does to some pixels. */
struct Sample {
  I touched;         // whether the eye changes the pixel
  I elsewhere;       // whether the portrait's colour comes from another position:
  F from_x, from_y;  // that position
  I between;         // whether the pixel is of the eyeball
  F ball;            // how much of an iris is visible there
  F iris_x, iris_y;  // position in the iris's layer
  F lid_x, lid_y;    // position in the closed lid's layer
  F covered;         // opacity of the lid
  F light, lash;     // light on the eyeball below the lid; opacity of the lashes
};

/** Where pixels are in the eye's coordinates, and the lids' margins there. */
struct Place {
  F t, v, bend;  // share of the eye's length, distance below its axis; 0 at the corners, 1 between
  F upper, lower, crease, drooped;
  F painted;  // the line of the lashes in the closed lid's layer
  I under_lid;
};

EYE_TARGET inline Taps<4> in_layer(const Layer& layer, F x, F y) {
  return {layer.yuva.data(), layer.width, layer.height, x - layer.left, y - layer.top};
}

/** Sets what a blink does. @param x, y positions in the neutral picture */
EYE_TARGET inline void blink_over(const EyeState& state, F x, F y, const Place& at, Sample& out) {
  const Eye& eye = state.eye;
  const F edge = mix(at.drooped, at.lower, splat(state.blink)),
          // The lid's upper corners fade over a longer way than its edge does.
      up = clamp01((edge - at.v) / max(splat(1), edge - at.crease)), into = .02f + .12f * up,
          ends = smoothstep(splat(-EYE_BESIDE), into, at.t) *
                 smoothstep(splat(1 + EYE_BESIDE), 1 - into, at.t);
  // The lid's skin between crease and edge shows the closed lid from crease to lash line.
  const F stretch = (at.painted - at.crease) / max(splat(1), edge - at.crease),
          down = (at.v < edge ? at.crease + (at.v - at.crease) * stretch
                              : at.painted + min(at.v - edge, splat(state.below))) -
                 at.v;
  out.lid_x = x - down * eye.axis.y;
  out.lid_y = y + down * eye.axis.x;
  const Taps<4> lid = in_layer(eye.lid, x, y);
  const I has_lid = at.under_lid & lid.inside;
  // The layer is transparent where glasses cover the eye: they stay in front of the moving lid.
  const F shown = has_lid ? state.cover / 255 * lid(3) : splat(0);
  // The fold above the eye opens while the lid closes.
  const F unfolded =
      mix(splat(state.unfolded), splat(1),
          smoothstep(splat(.45f * eye.height), splat(.1f * eye.height), at.upper - at.v));
  out.covered = shown * unfolded * smoothstep(splat(-2.5f), splat(3.5f), at.v - at.crease) *
                smoothstep(splat(.9f), splat(-.9f), at.v - edge - state.below) * ends;
  const I shaded = (at.v > edge) & (at.v < at.lower);
  out.light =
      shaded ? 1 - state.shade * shown * smoothstep(splat(.35f * eye.height), splat(0), at.v - edge)
             : splat(1);
  const F across = (at.v - edge) / (.06f * eye.height + .85f),
          bell = clamp01(1 - across * across * (1 / 4.5f)), squared = bell * bell;
  out.lash =
      state.lash * shown * squared * squared * ends * (1 - .65f * (1 - at.bend) * (1 - at.bend));
}

/**
 * @param x, y positions of pixels in the neutral picture
 * @param out receives what the eye does to them; what a blink does only while it blinks
 * @returns whether it changes any; else `out` has no meaning
 */
EYE_TARGET inline bool sample(const EyeState& state, F x, F y, Sample& out) {
  const Eye& eye = state.eye;
  const float ax = eye.axis.x, ay = eye.axis.y, length = eye.length, height = eye.height;
  const F dx = x - eye.corner.x, dy = y - eye.corner.y;
  const F t = (dx * ax + dy * ay) / length, v = dy * ax - dx * ay;
  const I beside = (t >= -EYE_BESIDE) & (t <= 1 + EYE_BESIDE);
  if (!any(beside)) {
    return false;
  }
  const F bend = 4 * clamp01(t) * clamp01(1 - t);
  const auto [upper, lower] = margins_at(eye, t);
  const F crease = upper - EYE_ABOVE * length - 2, drooped = upper + state.droop * bend,
          sunk = max(drooped, lower + state.sink * bend);

  // A mood lowers or raises the upper lid, and both follow the iris. What lies beside a margin is
  // compressed or stretched.
  const bool moves_lids = state.droop != 0 || state.sink != 0;
  const F reach = splat(EYE_STRETCHED * height);
  I stretched{};
  if (moves_lids) {
    stretched = beside & (v > crease - 3) & (v < (state.sink != 0 ? sunk + reach : lower));
  }
  const F margin = sunk + eye.iris.below * bend;
  I between{};
  if (state.moves_iris()) {
    between = (v > drooped - 1) & (v < margin + EYE_WET_MARGIN) & (t > 0) & (t < 1);
  }
  I under_lid{};
  if (state.blink > 0) {
    under_lid = beside & (v >= crease - 3) & (v <= lower + 4 + state.below);
  }
  out.elsewhere = stretched | between;
  out.touched = out.elsewhere | under_lid;
  if (!any(out.touched)) {
    return false;
  }

  F v2 = v;
  if (moves_lids) {
    const F share = smoothstep(v < drooped ? crease - 3 : min(lower, drooped + reach), drooped, v),
            share_below = smoothstep(v < sunk ? max(drooped, sunk - reach) : sunk + reach, sunk, v);
    v2 = stretched ? v - bend * (state.droop * share + state.sink * share_below) : v;
  }
  out.between = between;
  if (any(between)) {
    const F half = splat(EYE_MARGIN_FADE / 2);
    out.ball = (between ? splat(1) : splat(0)) * smoothstep(drooped, drooped + EYE_MARGIN_FADE, v) *
               smoothstep(margin + half, margin - half, v);
    out.iris_x = x - state.shift.x;
    out.iris_y = y - state.shift.y;
  }
  out.from_x = eye.corner.x + t * length * ax - v2 * ay;
  out.from_y = eye.corner.y + t * length * ay + v2 * ax;
  if (state.blink > 0) {
    const F painted = lower + EYE_SAG * height * bend;
    blink_over(state, x, y, {t, v, bend, upper, lower, crease, drooped, painted, under_lid}, out);
  }
  return true;
}

/** @returns the opacity of a layer of the eyeball, of which `share` is visible between the lids */
EYE_TARGET inline F opacity(const Taps<4>& layer, F share) {
  return layer.inside ? share * layer(3) / 255 : splat(0);
}

/** @param y luma of the warped picture @returns luma with the eye drawn over it */
EYE_TARGET inline F luma(const EyeState& state, const Sample& at, F y) {
  const Asset& asset = state.asset;
  const Eye& eye = state.eye;
  if (any(at.elsewhere)) {
    const Taps<1> from(asset.luma, asset.width, asset.height, at.from_x, at.from_y);
    y = at.elsewhere ? from() : y;
  }
  if (any(at.between)) {
    const Taps<4> white = in_layer(eye.iris.white, at.from_x, at.from_y),
                  disc = in_layer(eye.iris.disc, at.iris_x, at.iris_y);
    y = mix(y, white(0), opacity(white, at.between ? splat(1) : splat(0)));
    y = mix(y, disc(0), opacity(disc, at.ball));
  }
  if (state.blink <= 0) {
    return y;
  }
  if (any(at.covered > 0)) {
    y = mix(y, in_layer(eye.lid, at.lid_x, at.lid_y)(0), at.covered);
  }
  return mix(16 + (y - 16) * at.light, splat(eye.lash.y), at.lash);
}

EYE_TARGET inline void chroma(const EyeState& state, const Sample& at, F& u, F& v) {
  const Asset& asset = state.asset;
  const Eye& eye = state.eye;
  if (any(at.elsewhere)) {
    const F x = (at.from_x - .5f) / 2, y = (at.from_y - .5f) / 2;
    const Taps<1> from_u(asset.u, asset.width / 2, asset.height / 2, x, y),
        from_v(asset.v, asset.width / 2, asset.height / 2, x, y);
    u = at.elsewhere ? from_u() : u;
    v = at.elsewhere ? from_v() : v;
  }
  if (any(at.between)) {
    const Taps<4> white = in_layer(eye.iris.white, at.from_x, at.from_y),
                  disc = in_layer(eye.iris.disc, at.iris_x, at.iris_y);
    const F bare = opacity(white, at.between ? splat(1) : splat(0)), over = opacity(disc, at.ball);
    u = mix(mix(u, white(1), bare), disc(1), over);
    v = mix(mix(v, white(2), bare), disc(2), over);
  }
  if (state.blink <= 0) {
    return;
  }
  if (any(at.covered > 0)) {
    const Taps<4> lid = in_layer(eye.lid, at.lid_x, at.lid_y);
    u = mix(u, lid(1), at.covered);
    v = mix(v, lid(2), at.covered);
  }
  u = mix(128 + (u - 128) * at.light, splat(eye.lash.u), at.lash);
  v = mix(128 + (v - 128) * at.light, splat(eye.lash.v), at.lash);
}

/**
 * Displacements of pixels in a row of cells, by the nodes above and below it. Those between are
 * interpolated between nodes that are `scale` apart, as for the planes' tiles.
 */
struct Columns {
  F x, top_x, bottom_x, top_y, bottom_y;
};
/** @param x, y the first pixel, at a node @param first how far right of it the first position is */
EYE_TARGET inline Columns columns_at(const EyeCanvas& to, int x, int y, int scale, float first,
                                     float step) {
  const int span = NODE_STEP * scale, i = (x - to.grid_x) / span, j = (y - to.grid_y) / span;
  const auto k = ptrdiff_t(j * scale) * to.columns + i * scale,
             below = k + ptrdiff_t(to.columns) * scale;
  const F fx = (first + along_cell(step)) / float(span);
  return {float(x) + (first + along(step)), between_nodes(to.nodes_x + k, scale, fx),
          between_nodes(to.nodes_x + below, scale, fx), between_nodes(to.nodes_y + k, scale, fx),
          between_nodes(to.nodes_y + below, scale, fx)};
}

/** @param fy how far the row is between the nodes above and below it, 0 to 1 */
EYE_TARGET inline bool sample_row(const EyeState& state, const Columns& across, float y, float fy,
                                  Sample& at) {
  const F down = splat(fy);
  return sample(state, across.x - mix(across.top_x, across.bottom_x, down) / SUBPIXEL,
                y - mix(across.top_y, across.bottom_y, down) / SUBPIXEL, at);
}

EYE_TARGET inline void draw_luma(const EyeState& state, const EyeCanvas& to) {
  Sample at;
  for (int top = to.y0; top < to.y1; top += NODE_STEP) {
    for (int x = to.x0; x < to.x1; x += LANES) {
      const Columns across = columns_at(to, x, top, 1, 0, 1);
      for (int i = 0; i < NODE_STEP; i++) {
        const int y = top + i;
        if (sample_row(state, across, float(y), float(i) / NODE_STEP, at)) {
          uint8_t* pixels = to.y + ptrdiff_t(y) * to.stride + x;
          put(luma(state, at, take(pixels)), at.touched, pixels);
        }
      }
    }
  }
}

EYE_TARGET inline void draw_chroma(const EyeState& state, const EyeCanvas& to) {
  constexpr int SPAN = 2 * NODE_STEP;
  Sample at;
  for (int top = to.y0; top < to.y1; top += SPAN) {
    for (int x = to.x0; x < to.x1; x += 2 * LANES) {
      const Columns across = columns_at(to, x, top, 2, .5f, 2);
      for (int i = 0; i < SPAN; i += 2) {
        const int y = top + i;
        if (!sample_row(state, across, float(y) + .5f, (float(i) + .5f) / SPAN, at)) {
          continue;
        }
        const ptrdiff_t place = ptrdiff_t(y / 2) * (to.stride / 2) + x / 2;
        F u = take(to.u + place), v = take(to.v + place);
        chroma(state, at, u, v);
        put(u, at.touched, to.u + place);
        put(v, at.touched, to.v + place);
      }
    }
  }
}
