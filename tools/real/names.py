"""The names of the models of `./dev bench real`, for programs that need no PyTorch."""

IMAGES = (
    "resnet50 mobilenet_v2 mobilenet_v3_large efficientnet_b0 convnext_tiny swin_t vit_b_16"
    " densenet121 regnet_y_800mf shufflenet_v2_x1_0 vgg16 inception_v3 fcn_resnet50"
    " ssdlite320_mobilenet_v3_large"
).split()
OTHERS = (
    "bert distilbert roberta gpt2 gpt2_decode qwen llama t5_encoder whisper_encoder wav2vec2 lstm"
    " dlrm forest"
).split()
TRAINING = "train_mlp train_resnet18 train_transformer train_lstm train_graphsage".split()
# Models of images that are also measured with a batch of 8.
BATCHED = [name for name in IMAGES if name not in ("fcn_resnet50", "ssdlite320_mobilenet_v3_large")]
QUICK = "resnet50 mobilenet_v3_large convnext_tiny swin_t bert gpt2 lstm train_mlp".split()
