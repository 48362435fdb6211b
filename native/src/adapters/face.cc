// The JavaScript classes FaceAsset and FaceRenderer (src/native/addon.ts).
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "adapters/adapters.h"
#include "adapters/napi_class.h"
#include "adapters/pool_task.h"
#include "core/face_renderer.h"

namespace mouthpiece {
namespace {

using namespace js;

/**
 * The bytes of a typed array. Memory of a SharedArrayBuffer is used in place; a reference keeps it
 * alive. Memory of an ArrayBuffer is copied, because JavaScript could detach it at any time.
 */
struct SharedBytes {
  napi_env env = nullptr;
  napi_ref keep = nullptr;
  std::vector<uint8_t> copy;
  std::span<const uint8_t> bytes;

  SharedBytes(const Args& args, size_t index) : env(args.env()) {
    const auto span = args.array<uint8_t>(index, "bytes");
    napi_value buffer = nullptr;
    check(env,
          napi_get_typedarray_info(env, args[index], nullptr, nullptr, nullptr, &buffer, nullptr));
    bool detachable = true;
    check(env, napi_is_arraybuffer(env, buffer, &detachable));
    if (detachable) {
      copy.assign(span.begin(), span.end());
      bytes = copy;
    } else {
      check(env, napi_create_reference(env, args[index], 1, &keep));
      bytes = span;
    }
  }
  ~SharedBytes() {
    if (keep) {
      napi_delete_reference(env, keep);
    }
  }
  SharedBytes(const SharedBytes&) = delete;
  SharedBytes& operator=(const SharedBytes&) = delete;
};

/**
 * A face asset and its model for drawing. Building the model takes 4 ms, and 20 ms the first time
 * in a process, so that another thread may do it. Only the JavaScript thread uses `is_busy`: it is
 * true while the other thread works.
 */
struct FaceAssetData {
  SharedBytes bytes;
  const face::Asset asset;
  bool is_busy = false;
  std::optional<face::Model> model;

  explicit FaceAssetData(const Args& args)
      : bytes(args, 0), asset(face::parse_asset(bytes.bytes)) {}
  void build_model_once() {
    if (!model) {
      model = face::build_model(asset);
    }
  }
};

/** The native part of a FaceAsset. Renderers share the data: either may be collected first. */
struct FaceAsset {
  std::shared_ptr<FaceAssetData> data;
  size_t external_bytes() const {
    const bool has_model = !data->is_busy && data->model;
    return data->bytes.copy.size() +
           (has_model ? data->model->sharp.size() + data->model->weight.size() * 4 * sizeof(float)
                      : 0);
  }
};

struct FaceRenderer {
  std::shared_ptr<FaceAssetData> data;
  face::Renderer renderer;
  explicit FaceRenderer(std::shared_ptr<FaceAssetData> asset)
      : data(std::move(asset)), renderer(*data->model) {}
  size_t external_bytes() const { return data->model->weight.size() * 32; }
};

using AssetClass = Class<FaceAsset>;
using RendererClass = Class<FaceRenderer>;

std::unique_ptr<FaceAsset> make_asset(const Args& args) {
  auto data = std::make_shared<FaceAssetData>(args);
  if (args.absent(1) || !args.boolean(1, "deferred")) {
    data->build_model_once();
  }
  return std::make_unique<FaceAsset>(FaceAsset{std::move(data)});
}
napi_value asset_width(FaceAsset& asset, const Args& args) {
  return integer(args.env(), asset.data->asset.width);
}
napi_value asset_height(FaceAsset& asset, const Args& args) {
  return integer(args.env(), asset.data->asset.height);
}

struct BuildTask final : PoolTask {
  std::shared_ptr<FaceAssetData> data;
  void run() override { data->build_model_once(); }
  napi_value settle(napi_env env, bool) override {
    data->is_busy = false;
    return undefined(env);
  }
};

napi_value prepare(FaceAsset& self, const Args& args) {
  if (self.data->is_busy) {
    throw std::runtime_error("FaceAsset is being prepared");
  }
  auto task = std::make_unique<BuildTask>();
  task->data = self.data;
  const napi_value promise = PoolTask::start(args.env(), "FaceAsset.prepare", std::move(task));
  self.data->is_busy = true;
  return promise;
}

std::unique_ptr<FaceRenderer> make_renderer(const Args& args) {
  const auto& data = AssetClass::from(args.env(), args[0], "asset").data;
  if (data->is_busy) {
    throw std::runtime_error("FaceAsset is being prepared");
  }
  data->build_model_once();
  return std::make_unique<FaceRenderer>(data);
}

napi_value render(FaceRenderer& self, const Args& args) {
  static_assert(sizeof(face::Articulation) == face::Articulation::SIZE * sizeof(float) &&
                sizeof(face::Pose) == face::Pose::SIZE * sizeof(float));
  const auto articulation = args.array<float>(0, "articulation", face::Articulation::SIZE);
  const auto pose = args.array<float>(1, "pose", face::Pose::SIZE);
  const auto picture = args.array<uint8_t>(2, "picture", self.renderer.picture_bytes());
  const auto dirty = args.array<uint8_t>(3, "dirty", self.renderer.macroblocks());
  const auto motion = args.absent(4)
                          ? std::span<int16_t>{}
                          : args.array<int16_t>(4, "motion", 2 * self.renderer.macroblocks());
  const bool may_shift = !args.absent(5) && args.boolean(5, "mayShift");
  face::Articulation a;
  face::Pose p;
  std::memcpy(&a, articulation.data(), sizeof a);
  std::memcpy(&p, pose.data(), sizeof p);
  self.renderer.render(a, p, picture, dirty, motion, may_shift);
  return undefined(args.env());
}

napi_value set_emotion(FaceRenderer& self, const Args& args) {
  self.renderer.set_emotion(int(args.integer(0, "emotion", 0, face::EMOTIONS - 1)),
                            float(args.number(1, "strength", 0, 1)));
  return undefined(args.env());
}

napi_value invalidate(FaceRenderer& self, const Args& args) {
  self.renderer.invalidate();
  return undefined(args.env());
}

}  // namespace

void register_face(napi_env env, napi_value exports) {
  AssetClass::define(
      env, exports, "FaceAsset",
      {AssetClass::constructor<make_asset>(), AssetClass::getter<asset_width>("width"),
       AssetClass::getter<asset_height>("height"), AssetClass::method<prepare>("prepare")});
  RendererClass::define(
      env, exports, "FaceRenderer",
      {RendererClass::constructor<make_renderer>(), RendererClass::method<render>("render"),
       RendererClass::method<set_emotion>("setEmotion"),
       RendererClass::method<invalidate>("invalidate")});
}

}  // namespace mouthpiece
