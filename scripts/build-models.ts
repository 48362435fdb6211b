// The model files that are made at set-up rather than shipped: landmark graphs in ONNX, and the default faces' assets.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const log = (line: string): void => {
  process.stderr.write(`[setup] ${line}\n`);
};

const { convertLandmarkModels } = await import('../models/convert/index.ts');
await convertLandmarkModels({ outDir: path.join(root, 'models/build'), log });
const { buildDefaultFaces } = await import('../src/jobs/face/default-faces.ts');
await buildDefaultFaces({ outDir: path.join(root, 'models/build/faces'), log });
