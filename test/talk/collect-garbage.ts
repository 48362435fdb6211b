// Preloaded by a thread under test: collects the garbage of its heap when it is asked to. A heap
// snapshot would collect it too, but the object that holds one crashes the process when it is freed
// after the thread has ended (Node 22: it refers to the heap of the thread).
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BroadcastChannel } from 'node:worker_threads';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const channel = new BroadcastChannel('collect-garbage');
channel.onmessage = () => {
  collect();
  channel.postMessage('collected');
};
channel.unref();
