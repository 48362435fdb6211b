// Plans what to send from the answer to an offer of ours (RFC 9429 section 5.11).
import {
  checkSameCertificate,
  chooseVideoCodec,
  hasCredentials,
  mediaPlan,
  type AnswerPlan,
} from './answer.ts';
import { FEEDBACK, invalidAnswer, type Answer, type OfferedSection } from './offer.ts';
import type { OwnSection } from './write-offer.ts';

/**
 * Plans what to send.
 * @param sections those of the offer
 * @param previous what was agreed on before
 * @throws ServiceError INVALID_OFFER that says what is wrong
 */
export function planFromAnswer(
  sections: readonly OwnSection[],
  answer: Answer,
  previous: AnswerPlan | undefined,
  isIceLite: boolean,
): AnswerPlan {
  if (isIceLite && answer.isIceLite) {
    throw invalidAnswer('both sides would be ICE-lite.');
  }
  if (answer.sections.length !== sections.length) {
    throw invalidAnswer(`it has ${answer.sections.length} m-lines for ${sections.length}.`);
  }
  const accepted = sections.map(({ kind, mid }, index) =>
    acceptedSection(answer, index, kind === 'data' ? 'application' : kind, mid),
  );
  const sectionOf = (kind: OwnSection['kind']): OfferedSection | undefined =>
    accepted[sections.findIndex((section) => section.kind === kind)];
  const first = accepted.find((section) => section !== undefined);
  if (first === undefined) {
    throw invalidAnswer('it refuses every m-line.');
  }
  const { transport } = first;
  if (!hasCredentials(transport)) {
    throw invalidAnswer('a=ice-ufrag or a=ice-pwd is missing or malformed.');
  }
  if (transport.fingerprints.length === 0) {
    throw invalidAnswer('it has no a=fingerprint with sha-256, sha-384 or sha-512.');
  }
  if (transport.setup !== 'active') {
    throw invalidAnswer('a=setup must be active, as the offer was passive.');
  }
  if (previous !== undefined) {
    checkSameCertificate(transport, previous.transport, invalidAnswer);
  }
  const isActive = (kind: OwnSection['kind'], section: OfferedSection): boolean =>
    (sections.find((own) => own.kind === kind)?.sends ?? false) &&
    (section.direction === 'recvonly' || section.direction === 'sendrecv');
  const video = sectionOf('video');
  const audio = sectionOf('audio');
  const chosen = video && chooseVideoCodec(video, previous?.video?.codec.payloadType);
  const opus = audio?.codecs.find(({ name }) => name === 'opus');
  return {
    offer: answer,
    video:
      video === undefined || chosen === undefined
        ? undefined
        : mediaPlan(
            video,
            chosen.offered,
            chosen.rtxPayloadType,
            isActive('video', video),
            false,
            FEEDBACK,
          ),
    videoCodec: chosen?.codec,
    audio:
      audio === undefined || opus === undefined
        ? undefined
        : mediaPlan(audio, opus, undefined, isActive('audio', audio), false, []),
    microphone: undefined,
    data: sectionOf('data'),
    transport,
  };
}

/** @returns undefined if the section is refused */
function acceptedSection(
  answer: Answer,
  index: number,
  kind: string,
  mid: string,
): OfferedSection | undefined {
  const section = answer.sections[index];
  if (section?.kind !== kind) {
    throw invalidAnswer(`m-line ${index + 1} is ${section?.kind ?? 'missing'}, not ${kind}.`);
  }
  const isUsable =
    kind === 'application' ? section.dataChannelForm !== undefined : section.hasRtcpMux;
  if (section.isRefused || !isUsable) {
    return undefined;
  }
  if (section.mid !== mid) {
    throw invalidAnswer(`the a=mid of m-line ${index + 1} has changed.`);
  }
  return section;
}
