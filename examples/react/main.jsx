// A page in React. Its server answers POST /session as agent.mjs does.
import { Mouthpiece } from '@mouthpiece/react';
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';

const { viewerUrl } = await (await fetch('/session', { method: 'POST' })).json();

function Page() {
  const [isOver, setIsOver] = useState(false);
  return isOver ? (
    <p>Good-bye!</p>
  ) : (
    <Mouthpiece viewerUrl={viewerUrl} onEnd={() => setIsOver(true)} style={{ width: 400 }} />
  );
}

createRoot(document.querySelector('#root')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
