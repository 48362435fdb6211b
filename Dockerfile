# Two stages: the first has the compilers and builds everything; the second has only what runs.
#   docker build --build-arg COMMIT=$(git rev-parse --short HEAD) -t mouthpiece .
#   docker run --rm -p 8080:8080 -p 40000-40003:40000-40003/udp \
#     -e ANNOUNCED_IPS=192.0.2.10 -v mouthpiece:/data mouthpiece

FROM node:22-bookworm-slim AS build
WORKDIR /app
# The set-up has the list of build packages: it installs them, and builds the addon and the models.
COPY package.json package-lock.json .npmrc ./
COPY scripts ./scripts
COPY native ./native
COPY models ./models
COPY src ./src
COPY clients ./clients
COPY tsconfig.json ./
# --build-arg CONVERSATIONS=0 leaves out the libraries of conversations, 290 MB.
ARG CONVERSATIONS=1
RUN node scripts/run.mjs setup \
  && if [ "$CONVERSATIONS" = 1 ]; then node scripts/install-talk.mjs; fi \
  && npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
  && rm -rf native/build/release /var/lib/apt/lists/*

FROM node:22-bookworm-slim
ARG COMMIT=unknown
ARG CONVERSATIONS=1
# The libraries that the addon links, redis-server for use without REDIS_URL, and the local voice and
# recogniser of conversations.
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends \
    libvpx7 libopenh264-7 libopus0 libyuv0 redis-server \
    $([ "$CONVERSATIONS" = 1 ] && echo flite pocketsphinx pocketsphinx-en-us) \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=build /app/package.json /app/.npmrc ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/native/build/mouthpiece.node ./native/build/mouthpiece.node
COPY --from=build /app/models ./models
COPY --from=build /app/src ./src
COPY --from=build /app/clients ./clients
COPY --from=build /app/scripts ./scripts
# /cores: for a volume that servers on one host share (CORE_LOCK_DIR).
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data \
    --shell /usr/sbin/nologin mouthpiece \
  && mkdir /data /cores && chown mouthpiece:mouthpiece /data /cores
USER mouthpiece
VOLUME /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 DATA_DIR=/data UDP_PORTS=40000-40003 WORKERS=4
LABEL org.opencontainers.image.revision=$COMMIT org.opencontainers.image.licenses=Apache-2.0
EXPOSE 8080 40000-40003/udp
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "const { TLS_CERT_FILE: tls, PORT } = process.env; require(tls ? 'https' : 'http').get({ port: PORT, path: '/healthz', rejectUnauthorized: false }, (r) => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# Node is process 1, so SIGTERM reaches it and it drains its sessions. Allow more time than
# DRAIN_SECONDS: docker stop -t 40.
STOPSIGNAL SIGTERM
CMD ["node", "--disable-warning=ExperimentalWarning", "src/main.ts"]
