// llama.cpp on a model, beside bench_llm:
//   node rival.mjs MODULES FILE THREADS TEXT
// reads a prompt of 512 tokens and makes 128, four times, and prints tokens a second of all rounds
// but the first, the seconds to the first token, and the largest resident memory of the process,
// with node, in bytes: {"prompt", "decode", "first", "resident"}. TEXT: it prints the perplexity
// of its first 256 tokens instead, of which the second half is scored. The caches are f16.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

const [modules, file, threadsText, text] = process.argv.slice(2);
const threads = Number(threadsText);
const PROMPT = 512, DECODED = 128, WINDOW = 256;
const {getLlama, LlamaLogLevel} = await import(
  pathToFileURL(createRequire(`${modules}/`).resolve('node-llama-cpp')));
const now = () => performance.now() / 1e3;

const start = now();
const llama = await getLlama({gpu: false, build: 'never', maxThreads: threads,
  logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: PROMPT + DECODED, batchSize: PROMPT,
  threads, sequences: 1});
const sequence = context.getSequence();
const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const prompt = Array.from({length: PROMPT}, (_, i) => i * 7919 % vocabulary);
const ROUNDS = 3;
const seconds = {prompt: 0, decode: 0};
let first = 0;
for (let round = 0; round <= (text ? -1 : ROUNDS); ++round) {
  await sequence.clearHistory();
  let begin = now();
  await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  if (round > 0) seconds.prompt += now() - begin;
  if (round === 0) first = now() - start;
  begin = now();
  let made = 0;
  for await (const token of sequence.evaluate([1], {temperature: 0, yieldEogTokens: true}))
    if (++made === DECODED - 1) break;
  if (round > 0) seconds.decode += now() - begin;
  if (made !== DECODED - 1) throw new Error(`it made ${made} tokens`);
}

let perplexity = 0;
if (text) {
  await sequence.clearHistory();
  // As hone's prompts begin. tokenize() adds no token.
  const begin = model.tokens.shouldPrependBosToken && model.tokens.bos !== null
    ? [model.tokens.bos] : [];
  const tokens = [...begin, ...model.tokenize(readFileSync(text, 'utf8'))].slice(0, WINDOW);
  if (tokens.length < WINDOW) {
    console.error(`the text has ${tokens.length} tokens, want ${WINDOW}`);
    process.exit(1);
  }
  const half = tokens.length >> 1;
  const wanted = tokens.map((token, i) =>
    i < half || i === tokens.length - 1 ? token : [token, {generateNext: {probabilities: true}}]);
  const found = await sequence.controlledEvaluate(wanted);
  let sum = 0, scored = 0;
  for (let i = half; i + 1 < tokens.length; ++i, ++scored)
    sum -= Math.log(found[i].next.probabilities.get(tokens[i + 1]));
  perplexity = Math.exp(sum / scored);
}
console.log(JSON.stringify(text ? {perplexity} : {prompt: ROUNDS * PROMPT / seconds.prompt,
  decode: ROUNDS * (DECODED - 1) / seconds.decode, first,
  resident: process.resourceUsage().maxRSS * 1024}));
process.exit(0);
