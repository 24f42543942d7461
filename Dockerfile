# Stages: build compiles; example is the example upstream of docker-compose.yml; the last is the gateway.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json ./
COPY src ./src
RUN npm run build

FROM build AS example
ENV HOST=0.0.0.0 PORT=3000
USER 65532:65532
CMD ["node", "dist/demo/upstream-main.js"]

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:24-slim AS gateway
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0
COPY package.json LICENSE ./
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
# Nothing is written, and any user will do.
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["node", "dist/healthcheck.js"]
CMD ["node", "dist/main.js"]
