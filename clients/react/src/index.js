// A talking face in React: the hook `useMouthpiece`, and the component `Mouthpiece` made with it.
import { Session, Viewer } from '@mouthpiece/client';
import {
  createElement,
  forwardRef,
  useCallback,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from 'react';

const CLOSED = { state: 'closed', isMuted: false, error: null, session: null, viewer: null };

/** See index.d.ts. */
export function useMouthpiece(options) {
  const { sessionToken, viewerUrl, baseUrl } = options;
  const [told, setTold] = useState(CLOSED);
  const latest = useRef(options);
  const live = useRef(null);
  const video = useRef(null);
  useEffect(() => {
    latest.current = options;
  });

  useEffect(() => {
    if (!sessionToken && !viewerUrl) {
      return undefined;
    }
    const tell = (change) => setTold((before) => ({ ...before, ...change }));
    const open = () => {
      const { onEnd: _, ...given } = latest.current;
      const one = viewerUrl ? new Viewer(given) : new Session(given);
      live.current = one;
      tell({ ...CLOSED, state: one.state, [viewerUrl ? 'viewer' : 'session']: one });
      one.on('state', (state) => tell({ state }));
      one.on('autoplay', ({ muted }) => tell({ isMuted: muted }));
      one.on('end', (end) => {
        tell({ error: end.error });
        latest.current.onEnd?.(end);
      });
      if (video.current) {
        one.attach(video.current);
      }
    };
    // In strict mode effects run twice: what is cleaned up at once is not connected.
    const timer = setTimeout(open, 0);
    return () => {
      clearTimeout(timer);
      const one = live.current;
      live.current = null;
      one?.close();
      setTold(CLOSED);
    };
  }, [sessionToken, viewerUrl, baseUrl]);

  const videoRef = useCallback((element) => {
    video.current = element;
    if (element) {
      live.current?.attach(element);
    }
  }, []);
  const speak = useCallback(async (source, how) => {
    if (!(live.current instanceof Session)) {
      throw new Error('There is no session that can speak: give useMouthpiece a sessionToken.');
    }
    return await live.current.speak(source, how);
  }, []);
  const interrupt = useCallback(() => live.current?.interrupt?.(), []);
  const finish = useCallback(async () => await live.current?.finish?.(), []);
  const unmute = useCallback(() => live.current?.unmute(), []);
  return { ...told, videoRef, speak, interrupt, finish, unmute };
}

/** See index.d.ts. */
export const Mouthpiece = forwardRef(function Mouthpiece(props, ref) {
  const {
    label = 'Talking face',
    unmuteText = 'Turn on the sound',
    className,
    style,
    ...options
  } = props;
  const face = useMouthpiece(options);
  useImperativeHandle(ref, () => face);
  return createElement(
    'div',
    { className, style: { position: 'relative', ...style }, 'data-state': face.state },
    createElement('video', {
      ref: face.videoRef,
      playsInline: true,
      'aria-label': label,
      style: { display: 'block', width: '100%', borderRadius: 'inherit' },
    }),
    face.isMuted &&
      createElement(
        'button',
        {
          type: 'button',
          onClick: face.unmute,
          style: { position: 'absolute', bottom: '1rem', left: '50%', translate: '-50%' },
        },
        unmuteText,
      ),
  );
});
